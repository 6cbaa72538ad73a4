use super::basis::Bases;
use super::matrix::{MatrixSource, rng, weights};
use super::node::{Items, Node};
use super::place::{Fields, Place, choice, whole, wholes};
use super::read::basis_of;
use super::variables::Variables;
use crate::circuit::{Circuit, Weights};
use crate::file::FileError;
use crate::file::limits::{BYTES_PER_VARIABLE, MAX_WIDTH};
use crate::linalg::Complex64;
use crate::structure::{Product, Region, RegionTree, Structure, TreeError};

const FIELDS: &[&str] = &["tree", "width", "output_width", "product", "weights", "seed", "basis"];

/// Builds a circuit from a compact description of its structure.
pub(super) fn read<'n>(
    node: &'n Node,
    place: &Place<'_>,
    variables: &Variables,
    bases: &mut Bases<'n>,
    source: &mut MatrixSource<'_>,
) -> Result<Circuit, FileError> {
    let fields = Fields::of(node, place, FIELDS)?;
    let tree = tree(fields.require("tree", place)?, &place.field("tree"), variables.list.len())?;
    let products = products(fields.get("product"), &place.field("product"), &tree)?;
    let default = match fields.get("basis") {
        Some(node) => Some(bases.refer(node, &place.field("basis"))?),
        None => None,
    };
    let mut leaves = Vec::with_capacity(variables.list.len());
    for (variable, own) in variables.list.iter().zip(&variables.bases) {
        let place = place.field("basis");
        let basis = basis_of(own.or(default), &variable.domain, bases, source, &place)?;
        leaves.push((variable.clone(), basis));
    }
    let size = |name: &str, default| {
        let place = place.field(name);
        let size = fields.get(name).map_or(Ok(default), |node| whole(node, &place))?;
        place.check_size("a width", size as u128, MAX_WIDTH).map(|()| size)
    };
    let structure = Structure::new(tree, |v| leaves[v].clone())
        .width(size("width", 8)?)
        .output_width(size("output_width", 1)?)
        .products(|region| products[region]);
    let weights = match fields.get("weights") {
        Some(node) => weights(node, &place.field("weights"))?,
        None => Weights::default(),
    };
    let rows = size("width", 8)?.max(size("output_width", 1)?);
    let entries = structure.num_parameters();
    source.draw(entries, rows, weights, place)?;
    let bytes = entries.saturating_mul(size_of::<Complex64>() as u128);
    let bytes = bytes + variables.list.len() as u128 * BYTES_PER_VARIABLE;
    place.check_memory("the circuit", bytes, 0)?;
    let rng = &mut rng(fields.get("seed"), &place.field("seed"))?;
    let failed = |source| FileError::Circuit { place: place.to_string(), source };
    structure.build(weights, rng).map_err(failed)
}

/// The kind of every region's product: one for all, or one for each split, in the order of the closing brackets.
fn products(
    node: Option<&Node>,
    place: &Place<'_>,
    tree: &RegionTree,
) -> Result<Vec<Product>, FileError> {
    let product = |node: &Node, place: &Place<'_>| {
        Ok(match choice(node, place, "product", &["kronecker", "hadamard"])? {
            "kronecker" => Product::Kronecker,
            _ => Product::Hadamard,
        })
    };
    let mut products = vec![Product::default(); tree.regions().len()];
    match node {
        None => {}
        Some(Node::List(list)) => {
            let is_split = |r: &&usize| matches!(tree.regions()[**r], Region::Split(_));
            let all: Vec<usize> = (0..products.len()).collect();
            let splits: Vec<usize> = all.iter().filter(is_split).copied().collect();
            if list.len() != splits.len() {
                let (place, what) = (place.to_string(), "kinds of products");
                let (expected, found) = (splits.len(), list.len());
                return Err(FileError::Count { place, what, expected, found });
            }
            for (index, node) in list.iter().enumerate() {
                products[splits[index]] = product(node, &place.item(index))?;
            }
        }
        Some(node) => products.fill(product(node, place)?),
    }
    Ok(products)
}

fn tree(node: &Node, place: &Place<'_>, num_variables: usize) -> Result<RegionTree, FileError> {
    const TREE: &str =
        "\"linear\", \"balanced\", {\"image\": [h, w, c]}, {\"random\": seed} or a nested list";
    let failed = |source| FileError::Tree { place: place.to_string(), source };
    if num_variables == 0 {
        return Err(failed(TreeError::Empty));
    }
    let tree = match node {
        Node::Text(name) if name == "linear" => return Ok(RegionTree::linear(num_variables)),
        Node::Text(name) if name == "balanced" => return Ok(RegionTree::balanced(num_variables)),
        Node::Text(text) if text.trim_start().starts_with(['[', '0']) => {
            RegionTree::parse(text).map_err(failed)?
        }
        Node::Text(_) => return Err(place.expected(TREE, node)),
        Node::Object(_) => return grown(node, place, num_variables),
        Node::Word(_) | Node::Number(_) | Node::Pair(_) | Node::Numbers(_) | Node::List(_) => {
            let mut text = String::new();
            nested_list(node, place, &mut text)?;
            RegionTree::parse(&text).map_err(failed)?
        }
    };
    check_count(place, num_variables, tree.num_variables())?;
    Ok(tree)
}

/// A tree with parameters: of an image, or random.
fn grown(node: &Node, place: &Place<'_>, num_variables: usize) -> Result<RegionTree, FileError> {
    let fields = Fields::of(node, place, &["image", "random"])?;
    fields.exclude("image", "random", place)?;
    let Some(image) = fields.get("image") else {
        let place_of_seed = place.field("random");
        let rng = &mut rng(Some(fields.require("random", place)?), &place_of_seed)?;
        return Ok(RegionTree::random(num_variables, rng));
    };
    let place = place.field("image");
    let sides = wholes(image, &place)?;
    let (height, width, channels) = match sides[..] {
        [height, width] => (height, width, 1),
        [height, width, channels] => (height, width, channels),
        _ => return Err(place.expected("[height, width] or [height, width, channels]", image)),
    };
    let found = height.saturating_mul(width).saturating_mul(channels);
    check_count(&place, num_variables, found)?;
    Ok(RegionTree::image(height, width, channels))
}

fn check_count(place: &Place<'_>, expected: usize, found: usize) -> Result<(), FileError> {
    if expected == found {
        return Ok(());
    }
    Err(FileError::Count { place: place.to_string(), what: "variables", expected, found })
}

/// Formats a nested list as text. The JSON parser has limited its depth.
fn nested_list(node: &Node, place: &Place<'_>, text: &mut String) -> Result<(), FileError> {
    if let Node::Number(_) = node {
        text.push_str(&whole(node, place)?.to_string());
        return Ok(());
    }
    let Some(items) = node.as_list() else {
        return Err(place.expected("a variable's position or a nested list", node));
    };
    text.push('[');
    for index in 0..items.len() {
        if index > 0 {
            text.push_str(", ");
        }
        match items {
            Items::Numbers(numbers) => {
                nested_list(&Node::Number(numbers[index]), &place.item(index), text)?;
            }
            Items::Nodes(nodes) => nested_list(&nodes[index], &place.item(index), text)?,
        }
    }
    text.push(']');
    Ok(())
}
