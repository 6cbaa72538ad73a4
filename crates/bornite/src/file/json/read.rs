use std::collections::BTreeMap;
use std::sync::Arc;

use super::basis::Bases;
use super::matrix::MatrixSource;
use super::node::Node;
use super::place::{Fields, Place, kind_of, named, objects, text, whole, wholes};
use super::variables::Variables;
use super::{TOP, VERSION, structure};
use crate::Domain;
use crate::basis::Basis;
use crate::circuit::{Circuit, CircuitBuilder, CircuitError, Layer, LayerId, VariableId, WeightId};
use crate::file::FileError;
use crate::file::limits::MAX_WIDTH;
use crate::file::safetensors::Tensors;

const FIELDS: &[&str] =
    &["version", "variables", "bases", "weights", "layers", "output", "structure"];

/// Builds the circuit that a JSON value describes, with the tensors of its safetensors file.
pub(crate) fn read(top: &Node, tensors: Option<Tensors<'_>>) -> Result<Circuit, FileError> {
    let place = &TOP;
    let fields = Fields::of(top, place, FIELDS)?;
    check_version(&fields, tensors.is_some())?;
    let mut bases = Bases::new(fields.get("bases"), &place.field("bases"))?;
    let list = fields.require("variables", place)?;
    let variables = Variables::read(list, &place.field("variables"), &mut bases)?;
    let mut source = MatrixSource::new(tensors);
    let circuit = if let Some(node) = fields.get("structure") {
        for field in ["layers", "output", "weights"] {
            fields.exclude("structure", field, place)?;
        }
        let place = place.field("structure");
        structure::read(node, &place, &variables, &mut bases, &mut source)?
    } else {
        let reader = LayerReader::new(&variables, &mut bases, &mut source);
        reader.read(&fields)?
    };
    bases.finish()?;
    source.finish()?;
    Ok(circuit)
}

/// Checks the version, which may be omitted in files written by hand but not by programs.
fn check_version(fields: &Fields<'_>, needed: bool) -> Result<(), FileError> {
    let place = TOP.field("version");
    let found = match fields.get("version") {
        Some(node) => whole(node, &place)?,
        None if needed => whole(fields.require("version", &TOP)?, &place)?,
        None => VERSION,
    };
    if found == VERSION {
        return Ok(());
    }
    let (place, found, known) = (place.to_string(), found as u64, VERSION as u64);
    Err(FileError::Version { place, found, known })
}

/// The basis of a variable: the declared one, or indicators if the domain is finite.
pub(super) fn basis_of(
    given: Option<usize>,
    domain: &Domain,
    bases: &mut Bases<'_>,
    source: &mut MatrixSource<'_>,
    place: &Place<'_>,
) -> Result<Arc<Basis>, FileError> {
    match (given, domain) {
        (Some(index), _) => bases.make(index, domain, source),
        (None, Domain::Finite(values)) => Ok(Arc::new(Basis::indicator(*values))),
        (None, _) => Err(FileError::MissingField { place: place.to_string(), field: "basis" }),
    }
}

/// Reads layers that are listed one by one.
struct LayerReader<'r, 'n, 'b> {
    variables: &'r Variables,
    bases: &'r mut Bases<'n>,
    source: &'r mut MatrixSource<'b>,
    builder: CircuitBuilder,
    widths: Vec<usize>,
    /// The named weights, and whether a layer uses them.
    names: BTreeMap<&'n str, (WeightId, bool)>,
}

impl<'r, 'n, 'b> LayerReader<'r, 'n, 'b> {
    fn new(
        variables: &'r Variables,
        bases: &'r mut Bases<'n>,
        source: &'r mut MatrixSource<'b>,
    ) -> Self {
        let mut builder = CircuitBuilder::new();
        for variable in &variables.list {
            builder.variable(variable.name.clone(), variable.domain.clone());
        }
        let (widths, names) = (Vec::new(), BTreeMap::new());
        Self { variables, bases, source, builder, widths, names }
    }

    fn read(mut self, fields: &Fields<'n>) -> Result<Circuit, FileError> {
        if let Some(node) = fields.get("weights") {
            self.read_weights(node, &TOP.field("weights"))?;
        }
        let place = TOP.field("layers");
        for (index, node) in objects(fields.require("layers", &TOP)?, &place)?.iter().enumerate() {
            let place = place.item(index);
            let layer = self.layer(node, &place)?;
            let width = self.width(&layer);
            place.check_size("a width", width as u128, MAX_WIDTH)?;
            self.widths.push(width);
            self.builder.push(layer);
        }
        if let Some((name, _)) = self.names.iter().find(|(_, (_, used))| !used) {
            let place = TOP.field("weights").field(name).to_string();
            return Err(FileError::Unused { place });
        }
        let output = whole(fields.require("output", &TOP)?, &TOP.field("output"))?;
        let count = self.widths.len();
        if output >= count {
            let source = match count {
                0 => CircuitError::Empty,
                _ => CircuitError::UnknownOutput { output, count },
            };
            return Err(FileError::Circuit { place: TOP.field("output").to_string(), source });
        }
        let failed = |source| FileError::Circuit { place: place.to_string(), source };
        self.builder.build(LayerId::new(output)).map_err(failed)
    }

    fn read_weights(&mut self, node: &'n Node, place: &Place<'_>) -> Result<(), FileError> {
        for (name, node) in named(node, place)? {
            let weight = self.source.weight(node, &place.field(name), None)?;
            let id = self.builder.weight(weight);
            self.names.insert(name, (id, false));
        }
        Ok(())
    }

    fn layer(&mut self, node: &'n Node, place: &Place<'_>) -> Result<Layer, FileError> {
        Ok(match kind_of(node, place, &["input", "hadamard", "kronecker", "sum"])? {
            "input" => self.input(node, place)?,
            "hadamard" => Layer::Hadamard { inputs: self.inputs(node, place)? },
            "kronecker" => Layer::Kronecker { inputs: self.inputs(node, place)? },
            _ => {
                let fields = Fields::of(node, place, &["kind", "input", "weight"])?;
                let at = place.field("input");
                let input = self.earlier(whole(fields.require("input", place)?, &at)?, &at)?;
                let weight = fields.require("weight", place)?;
                let weight = self.weight(weight, &place.field("weight"), input)?;
                Layer::Sum { input, weight }
            }
        })
    }

    fn input(&mut self, node: &'n Node, place: &Place<'_>) -> Result<Layer, FileError> {
        let fields = Fields::of(node, place, &["kind", "variable", "basis"])?;
        let at = place.field("variable");
        let variable = self.variables.find(text(fields.require("variable", place)?, &at)?, &at)?;
        let given = match fields.get("basis") {
            Some(node) => Some(self.bases.refer(node, &place.field("basis"))?),
            None => self.variables.bases[variable],
        };
        let domain = &self.variables.list[variable].domain;
        let basis = basis_of(given, domain, self.bases, self.source, place)?;
        Ok(Layer::Input { variable: VariableId::new(variable), basis })
    }

    fn inputs(&self, node: &Node, place: &Place<'_>) -> Result<Vec<LayerId>, FileError> {
        let fields = Fields::of(node, place, &["kind", "inputs"])?;
        let place = place.field("inputs");
        let inputs = wholes(fields.require("inputs", &place)?, &place)?;
        inputs.iter().enumerate().map(|(n, &i)| self.earlier(i, &place.item(n))).collect()
    }

    fn earlier(&self, input: usize, place: &Place<'_>) -> Result<LayerId, FileError> {
        if input < self.widths.len() {
            return Ok(LayerId::new(input));
        }
        let layer = LayerId::new(self.widths.len());
        let source = CircuitError::UnknownInput { layer, input };
        Err(FileError::Circuit { place: place.to_string(), source })
    }

    fn weight(
        &mut self,
        node: &'n Node,
        place: &Place<'_>,
        input: LayerId,
    ) -> Result<WeightId, FileError> {
        let Node::Text(name) = node else {
            let columns = self.widths[input.index()];
            let weight = self.source.weight(node, place, Some(columns))?;
            return Ok(self.builder.weight(weight));
        };
        if let Some((id, used)) = self.names.get_mut(name.as_str()) {
            *used = true;
            return Ok(*id);
        }
        Err(place.unknown_name("weight in \"weights\"", name, self.names.keys().copied()))
    }

    /// The width of the layer, provided that it is valid, which the builder checks.
    fn width(&self, layer: &Layer) -> usize {
        let mut inputs = layer.inputs().iter().map(|i| self.widths[i.index()]);
        match layer {
            Layer::Input { basis, .. } => basis.width(),
            Layer::Hadamard { .. } => inputs.next().unwrap_or(0),
            Layer::Kronecker { .. } => inputs.fold(1, usize::saturating_mul),
            Layer::Sum { weight, .. } => self.builder.weight_rows(*weight),
        }
    }
}
