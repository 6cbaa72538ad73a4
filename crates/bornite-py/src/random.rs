//! Circuits over trees of regions, with random weights.

use std::sync::Arc;

use bornite::circuit::Weights;
use bornite::structure::{Product, Region, RegionTree, Structure, TreeError};
use bornite::{Basis, Domain, Variable};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::argument::{BasisLike, DomainLike, Name, OneOrEach, shown};
use crate::exception::{BorniteError, Raise, argument_error};

/// Reads a tree. `num_variables` is used if the tree does not define it.
pub(crate) fn tree(
    object: &Bound<'_, PyAny>,
    num_variables: Option<usize>,
    seed: u64,
) -> PyResult<RegionTree> {
    if let Ok(name) = object.cast::<PyString>() {
        return named_tree(&name.to_string_lossy(), num_variables, seed);
    }
    if let Ok(image) = object.cast::<PyTuple>() {
        return image_tree(image);
    }
    let tree = if object.is_instance_of::<PyList>() {
        RegionTree::new(regions(object)?)
    } else if let Ok(v) = object.extract::<usize>() {
        RegionTree::new(vec![Region::Variable(v)])
    } else {
        return Err(no_tree(object));
    };
    tree.map_err(Raise::raise)
}

fn named_tree(name: &str, num_variables: Option<usize>, seed: u64) -> PyResult<RegionTree> {
    if name.trim_start().starts_with('[') {
        return RegionTree::parse(name).map_err(Raise::raise);
    }
    let Some(num_variables) = num_variables else {
        let message = format!(
            "a {name} tree does not define the number of variables; give a list with one basis per variable"
        );
        return Err(BorniteError::new_err(message));
    };
    if num_variables == 0 {
        return Err(TreeError::Empty.raise());
    }
    match name {
        "balanced" => Ok(RegionTree::balanced(num_variables)),
        "linear" => Ok(RegionTree::linear(num_variables)),
        "random" => Ok(RegionTree::random(num_variables, &mut ChaCha8Rng::seed_from_u64(seed))),
        _ => Err(BorniteError::new_err(format!(
            "there is no tree '{name}'; give 'balanced', 'linear', 'random', ('image', height, \
             width, channels) or a nested list such as [[0, 1], 2]"
        ))),
    }
}

fn image_tree(image: &Bound<'_, PyTuple>) -> PyResult<RegionTree> {
    let sides = match image.extract::<(String, usize, usize)>() {
        Ok((name, height, width)) if name == "image" => Some((height, width, 1)),
        _ => match image.extract::<(String, usize, usize, usize)>() {
            Ok((name, height, width, channels)) if name == "image" => {
                Some((height, width, channels))
            }
            _ => None,
        },
    };
    let Some((height, width, channels)) = sides else { return Err(no_tree(image)) };
    match height.checked_mul(width).and_then(|n| n.checked_mul(channels)) {
        Some(0) => Err(TreeError::Empty.raise()),
        Some(n) if u32::try_from(n).is_ok() => Ok(RegionTree::image(height, width, channels)),
        _ => Err(BorniteError::new_err("the image has too many pixels")),
    }
}

fn no_tree(object: &Bound<'_, PyAny>) -> PyErr {
    let found = shown(object);
    argument_error(format!(
        "expected 'balanced', 'linear', 'random', ('image', height, width, channels) or a nested \
         list such as [[0, 1], 2], found {found}"
    ))
}

/// The regions of a nested list, computed without recursion, since a list can be as deep as it is long.
fn regions(list: &Bound<'_, PyAny>) -> PyResult<Vec<Region>> {
    let mut regions = Vec::new();
    let mut open = vec![(list.try_iter()?, Vec::new())];
    while let Some((items, parts)) = open.last_mut() {
        match items.next().transpose()? {
            Some(item) if item.is_instance_of::<PyList>() => {
                open.push((item.try_iter()?, Vec::new()));
            }
            Some(item) => {
                let Ok(variable) = item.extract::<usize>() else { return Err(no_tree(&item)) };
                parts.push(regions.len());
                regions.push(Region::Variable(variable));
            }
            None => {
                let parts = std::mem::take(parts);
                open.pop();
                if let Some((_, above)) = open.last_mut() {
                    above.push(regions.len());
                }
                regions.push(Region::Split(parts));
            }
        }
    }
    Ok(regions)
}

pub(crate) fn weights(name: &str) -> PyResult<Weights> {
    match name {
        "gaussian" => Ok(Weights::Gaussian),
        "real_gaussian" => Ok(Weights::RealGaussian),
        "haar" => Ok(Weights::Haar),
        "real_haar" => Ok(Weights::RealHaar),
        _ => Err(BorniteError::new_err(format!(
            "there is no weight distribution '{name}'; give 'gaussian', 'real_gaussian', 'haar' or \
             'real_haar'"
        ))),
    }
}

fn product(name: &str) -> PyResult<Product> {
    match name {
        "kronecker" => Ok(Product::Kronecker),
        "hadamard" => Ok(Product::Hadamard),
        _ => {
            let message = format!("there is no product '{name}'; give 'kronecker' or 'hadamard'");
            Err(BorniteError::new_err(message))
        }
    }
}

/// The variables of a random circuit.
pub(crate) struct Leaves {
    bases: Vec<Arc<Basis>>,
    domains: Vec<Domain>,
    names: Vec<String>,
}

impl Leaves {
    pub(crate) fn new(
        count: usize,
        bases: OneOrEach<BasisLike>,
        domains: Option<OneOrEach<DomainLike>>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let bases: Vec<Arc<Basis>> = bases.spread(count).into_iter().map(|b| b.0).collect();
        let domains: Vec<Domain> = match domains {
            None => bases.iter().map(|b| b.natural_domain()).collect(),
            Some(domains) => domains.spread(count).into_iter().map(|d| d.0).collect(),
        };
        let names = names.unwrap_or_else(|| (0..count).map(|v| format!("x{v}")).collect());
        for (what, found) in
            [("bases", bases.len()), ("domains", domains.len()), ("names", names.len())]
        {
            if found != count {
                return Err(BorniteError::new_err(format!(
                    "{found} {what} for {count} variables: give one per variable"
                )));
            }
        }
        Ok(Self { bases, domains, names })
    }

    pub(crate) fn structure(&self, tree: RegionTree) -> Structure {
        Structure::new(tree, |v| {
            (Variable::new(self.names[v].clone(), self.domains[v].clone()), self.bases[v].clone())
        })
    }
}

/// The structure with its kinds of products, one for all or one for each split, parts first.
pub(crate) fn with_products(
    structure: Structure,
    products: OneOrEach<Name>,
) -> PyResult<Structure> {
    let kinds = match products {
        OneOrEach::One(name) => return Ok(structure.product(product(&name.0)?)),
        OneOrEach::Each(names) => {
            names.iter().map(|n| product(&n.0)).collect::<PyResult<Vec<_>>>()?
        }
    };
    let regions = structure.tree().regions();
    let is_split: Vec<bool> = regions.iter().map(|r| matches!(r, Region::Split(_))).collect();
    let count = is_split.iter().filter(|&&s| s).count();
    if kinds.len() != count {
        let found = kinds.len();
        let message = format!("{found} kinds of products for {count} splits: give one per split");
        return Err(BorniteError::new_err(message));
    }
    let mut kinds = kinds.into_iter();
    Ok(structure.products(|region| {
        if is_split[region] { kinds.next().unwrap_or_default() } else { Product::default() }
    }))
}
