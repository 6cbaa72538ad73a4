use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use bornite::basis::FourierForm;
use bornite::circuit::Weights;
use bornite::file::limits::{MAX_RANDOM_ENTRIES, MAX_WIDTH};
use bornite::structure::{Product, RegionTree, Structure};
use bornite::{Basis, Domain, Variable};
use clap::{Args, ValueEnum};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::Written;
use crate::files;
use crate::image::{ImageSize, MAX_VARIABLES};
use crate::tables;

/// Create a circuit with random weights.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bornite circuit new --tree balanced --variables 4 --domain finite:2 --width 3 -o c.json
  bornite circuit new --tree image:28x28 --domain finite:256 --width 16 -o mnist.safetensors
  bornite circuit new --tree \"[[0, 1], 2]\" --domain real --functions 4 -o c.json

The variables are named x0, x1, … . The same flags always give the same circuit.")]
pub(crate) struct New {
    /// linear, balanced, random, image:HxW, image:HxWxC, or a nested list such as "[[0, 1], 2]".
    #[arg(long, default_value = "balanced")]
    tree: String,
    /// The number of variables, for a linear, balanced or random tree.
    #[arg(long)]
    variables: Option<usize>,
    /// finite:V, real, interval:A,B, half-line:A or circle:PERIOD, for every variable.
    #[arg(long, default_value = "finite:2", value_parser = parse_domain, allow_hyphen_values = true)]
    domain: Domain,
    /// The input functions. The default depends on the domain.
    #[arg(long)]
    basis: Option<Family>,
    /// The number of input functions on a continuous domain.
    #[arg(long, default_value_t = 8)]
    functions: usize,
    /// The center of Hermite functions.
    #[arg(long, default_value_t = 0.0, allow_hyphen_values = true)]
    location: f64,
    /// The scale of Hermite and Laguerre functions.
    #[arg(long, default_value_t = 1.0, allow_hyphen_values = true)]
    scale: f64,
    /// The maximum width K of inner sum layers.
    #[arg(long, default_value_t = 8)]
    width: usize,
    /// The width r of the output: the number of squares in the sum.
    #[arg(long, default_value_t = 1)]
    output_width: usize,
    /// The kind of all product layers.
    #[arg(long, default_value = "kronecker")]
    product: ProductKind,
    /// The distribution of the weights; Haar weights are semi-unitary.
    #[arg(long, default_value = "gaussian")]
    weights: WeightKind,
    /// The random seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The file to write: JSON if the name ends in .json, safetensors otherwise.
    #[arg(short, long)]
    output: PathBuf,
    /// Print one JSON object: {output, variables, layers, parameters}.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Family {
    Indicator,
    Fourier,
    FourierComplex,
    Legendre,
    Laguerre,
    Hermite,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProductKind {
    Kronecker,
    Hadamard,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WeightKind {
    Gaussian,
    RealGaussian,
    Haar,
    RealHaar,
}

impl New {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        for (flag, width) in [("--width", self.width), ("--output-width", self.output_width)] {
            if !(1..=MAX_WIDTH).contains(&width) {
                bail!("{flag} {width}: give a width from 1 to {MAX_WIDTH}");
            }
        }
        tables::check_target(&self.output, &[], true)?;
        // Tree and weights use separate random streams, so the weights do not depend on how the tree is drawn.
        let tree = self.tree(&mut ChaCha8Rng::seed_from_u64(self.seed))?;
        let basis = Arc::new(self.basis()?);
        let leaf = |v| (Variable::new(format!("x{v}"), self.domain.clone()), basis.clone());
        let structure = Structure::new(tree, leaf)
            .width(self.width)
            .output_width(self.output_width)
            .product(match self.product {
                ProductKind::Kronecker => Product::Kronecker,
                ProductKind::Hadamard => Product::Hadamard,
            });
        let parameters = structure.num_parameters();
        if parameters > MAX_RANDOM_ENTRIES as u128 {
            bail!(
                "the circuit would have {parameters} parameters, more than the {MAX_RANDOM_ENTRIES} allowed: give a smaller --width"
            );
        }
        let weights = match self.weights {
            WeightKind::Gaussian => Weights::Gaussian,
            WeightKind::RealGaussian => Weights::RealGaussian,
            WeightKind::Haar => Weights::Haar,
            WeightKind::RealHaar => Weights::RealHaar,
        };
        let circuit = structure.build(weights, &mut ChaCha8Rng::seed_from_u64(self.seed))?;
        files::save(&circuit, &self.output)?;
        Written::new("wrote", &circuit, &self.output).write(out, self.json)
    }

    fn tree(&self, rng: &mut ChaCha8Rng) -> Result<RegionTree> {
        let text = self.tree.trim();
        let tree = match text {
            "linear" => RegionTree::linear(self.count()?),
            "balanced" => RegionTree::balanced(self.count()?),
            "random" => RegionTree::random(self.count()?, rng),
            _ if text.starts_with("image") => {
                let size = text["image".len()..].trim_start_matches([':', ' ', '=']);
                let size = ImageSize::parse(size).map_err(|e| anyhow!("--tree {text}: {e}"))?;
                RegionTree::image(size.height, size.width, size.channels)
            }
            _ if text.starts_with(|c: char| c == '[' || c.is_ascii_digit()) => {
                RegionTree::parse(text).map_err(|e| anyhow!("--tree {text}: {e}"))?
            }
            _ => bail!(
                "--tree {text}: give linear, balanced, random, image:HxW or a nested list such as [[0, 1], 2]"
            ),
        };
        match self.variables {
            Some(count) if count != tree.num_variables() => bail!(
                "--variables {count}: the tree has {} variables; omit the flag",
                tree.num_variables()
            ),
            _ => Ok(tree),
        }
    }

    /// The number of variables of a tree that does not define it.
    fn count(&self) -> Result<usize> {
        match self.variables {
            Some(count @ 1..=MAX_VARIABLES) => Ok(count),
            Some(count) => bail!("--variables {count}: give a number from 1 to {MAX_VARIABLES}"),
            None => {
                bail!("--tree {} needs a number of variables: add --variables N", self.tree.trim())
            }
        }
    }

    fn basis(&self) -> Result<Basis> {
        let basis = self.basis_on(self.domain.rest())?;
        Ok(match self.domain.atoms() {
            [] => basis,
            atoms => basis.with_atoms(atoms)?,
        })
    }

    fn basis_on(&self, domain: &Domain) -> Result<Basis> {
        let k = self.functions;
        let family = self.basis.unwrap_or(match domain {
            Domain::Finite(_) => Family::Indicator,
            Domain::Real => Family::Hermite,
            Domain::Interval(..) => Family::Legendre,
            Domain::HalfLine(_) => Family::Laguerre,
            Domain::Circle(_) => Family::Fourier,
            Domain::Atoms(parts) => return self.basis_on(&parts.rest),
        });
        let fourier = |form| match *domain {
            Domain::Circle(period) => Some(Basis::fourier(k, 0.0, period, form)),
            Domain::Interval(a, b) => Some(Basis::fourier(k, a, b, form)),
            Domain::Finite(_) | Domain::Real | Domain::HalfLine(_) | Domain::Atoms(_) => None,
        };
        let basis = match (family, domain) {
            (Family::Indicator, Domain::Finite(v)) => Some(Ok(Basis::indicator(*v))),
            (Family::Fourier, _) => fourier(FourierForm::Real),
            (Family::FourierComplex, _) => fourier(FourierForm::Complex),
            (Family::Legendre, Domain::Interval(a, b)) => Some(Basis::legendre(k, *a, *b)),
            (Family::Laguerre, Domain::HalfLine(a)) => Some(Basis::laguerre(k, *a, self.scale)),
            (Family::Hermite, Domain::Real) => Some(Basis::hermite(k, self.location, self.scale)),
            (
                Family::Indicator | Family::Legendre | Family::Laguerre | Family::Hermite,
                Domain::Finite(_)
                | Domain::Real
                | Domain::Interval(..)
                | Domain::HalfLine(_)
                | Domain::Circle(_)
                | Domain::Atoms(_),
            ) => None,
        };
        match basis {
            Some(basis) => Ok(basis?),
            None => bail!(
                "--basis {} is not defined on {domain}: omit --basis to use a suitable one",
                family.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
            ),
        }
    }
}

fn parse_domain(text: &str) -> Result<Domain> {
    let (kind, rest) = text.split_once([':', ' ']).unwrap_or((text, ""));
    let numbers: Option<Vec<f64>> =
        rest.split(',').filter(|x| !x.is_empty()).map(|x| x.trim().parse().ok()).collect();
    let domain = match (kind, numbers.as_deref()) {
        ("finite", _) => match rest.trim().parse() {
            Ok(v) if v <= MAX_WIDTH => Some(Domain::Finite(v)),
            _ => None,
        },
        ("real", Some([])) => Some(Domain::Real),
        ("interval", Some(&[a, b])) => Some(Domain::Interval(a, b)),
        ("half-line", Some(&[a])) => Some(Domain::HalfLine(a)),
        ("circle", Some(&[period])) => Some(Domain::Circle(period)),
        _ => None,
    };
    match domain.filter(Domain::is_valid) {
        Some(domain) => Ok(domain),
        None => bail!(
            "give finite:V, real, interval:A,B, half-line:A or circle:PERIOD, as in finite:3 or interval:-1,1"
        ),
    }
}
