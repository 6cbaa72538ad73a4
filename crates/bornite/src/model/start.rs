//! Continuing a fit from a model.

use super::{Model, ModelError, ModelOptions, StructureKind};
use crate::circuit::Layer;
use crate::data::Table;

impl Model {
    /// The options of a fit that continues from this model: its schema, and its target unless another is given.
    ///
    /// # Errors
    /// The options require other columns or another circuit, or the model is conditional.
    pub(super) fn options_to_continue(
        &self,
        options: ModelOptions,
        table: &Table,
    ) -> Result<ModelOptions, ModelError> {
        if let Some(problem) = self.contradiction(&options, table) {
            return Err(ModelError::Start { problem });
        }
        let target = options.target.or_else(|| self.info.target.clone());
        Ok(ModelOptions { schema: Some(self.schema.clone()), target, ..options })
    }

    /// The first option that contradicts the model, as text.
    fn contradiction(&self, options: &ModelOptions, table: &Table) -> Option<String> {
        if let [first, ..] = self.given() {
            return Some(format!("it is conditioned on {first}; give the unconditional model"));
        }
        let leave_out = "omit the setting, or fit from scratch";
        let squares = self.circuit().width(self.circuit().output());
        let sizes = [
            ("width", options.width, self.info.width),
            ("output width", options.output_width, squares),
            ("number of circuits", options.circuits, self.mixture.circuits().len()),
        ];
        for (setting, given, own) in sizes {
            if let Some(given) = given.filter(|given| *given != own) {
                return Some(format!("its {setting} is {own}, not {given}; {leave_out}"));
            }
        }
        if let Some(given) = options.functions.filter(|given| !self.has_functions(*given)) {
            return Some(format!("its columns do not have {given} functions; {leave_out}"));
        }
        let kind = options.structure.to_string();
        if options.structure != StructureKind::Auto && kind != self.info.structure {
            let own = &self.info.structure;
            return Some(format!("its structure is '{own}', not '{kind}'; {leave_out}"));
        }
        let given = [
            ("widths by the size of regions", options.widths.is_some()),
            ("a codebook", options.codebook.is_some()),
            ("shared weights", options.share.is_some()),
            ("kinds of columns", !options.infer.kinds.is_empty()),
            ("a schema", options.schema.as_ref().is_some_and(|schema| *schema != self.schema)),
        ];
        if let Some((setting, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Some(format!("{setting} cannot be given; {leave_out}"));
        }
        match (table.image(), self.schema.image()) {
            (Some(a), Some(b)) if a != b => Some("its images have a different size".to_owned()),
            _ => None,
        }
    }

    /// Whether its continuous columns have this number of input functions.
    fn has_functions(&self, functions: usize) -> bool {
        let Ok(bases) = self.schema.bases(functions) else { return false };
        self.circuit().layers().iter().all(|layer| match layer {
            Layer::Input { variable, basis } => basis.width() == bases[variable.index()].width(),
            Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => true,
        })
    }
}
