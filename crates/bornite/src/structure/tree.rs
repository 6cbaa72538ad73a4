use std::collections::BTreeMap;
use std::fmt;

use rand::Rng;
use rand::seq::SliceRandom;

/// A region: a set of variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Region {
    /// A single variable, given by its position.
    Variable(usize),
    /// The union of two or more earlier regions.
    Split(Vec<usize>),
}

/// A tree of regions: how the set of all variables is split repeatedly, down to single variables.
///
/// Each region comes after its parts, and the last one contains all variables.
///
/// ```
/// use bornite::structure::RegionTree;
///
/// assert_eq!(RegionTree::linear(4).to_string(), "[[[0, 1], 2], 3]");
/// assert_eq!(RegionTree::balanced(4).to_string(), "[[0, 1], [2, 3]]");
/// assert_eq!(RegionTree::parse("[[0, 2], 1]")?.num_variables(), 3);
/// # Ok::<(), bornite::structure::TreeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionTree {
    regions: Vec<Region>,
    num_variables: usize,
}

/// Why a nested list is not a region tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// There are no variables.
    #[error("a region tree needs at least one variable")]
    Empty,
    /// A split with fewer than two parts.
    #[error("region {region} is split into {parts} part; a split needs at least 2")]
    TooFewParts {
        /// The region.
        region: usize,
        /// The number of its parts.
        parts: usize,
    },
    /// A part that is not an earlier region, or is already part of another split.
    #[error(
        "region {region} refers to {part}, which is not an earlier region or is already part of another split"
    )]
    Part {
        /// The region.
        region: usize,
        /// The part.
        part: usize,
    },
    /// A region that is not part of any split and is not the last.
    #[error("region {region} is not part of any split; only the last region may be the root")]
    Unused {
        /// The region.
        region: usize,
    },
    /// A variable that is missing or occurs more than once.
    #[error(
        "variable {variable} is in the tree {times} times; each of 0 to {last} must occur once"
    )]
    Variable {
        /// The variable.
        variable: usize,
        /// The number of times it occurs.
        times: usize,
        /// The last variable.
        last: usize,
    },
    /// Text that is not a nested list.
    #[error("expected {expected} at character {position} of the nested list, as in [[0, 1], 2]")]
    Syntax {
        /// What was expected.
        expected: &'static str,
        /// The character, counted from 1.
        position: usize,
    },
}

impl RegionTree {
    /// A tree with these regions, each after its parts, and the whole set last.
    ///
    /// # Errors
    /// The regions do not form a tree over the variables 0, 1, …, d − 1.
    pub fn new(regions: Vec<Region>) -> Result<Self, TreeError> {
        let num_variables = regions.iter().filter(|r| matches!(r, Region::Variable(_))).count();
        if num_variables == 0 {
            return Err(TreeError::Empty);
        }
        let mut used = vec![false; regions.len()];
        let mut times = vec![0_usize; num_variables];
        for (index, region) in regions.iter().enumerate() {
            match region {
                Region::Variable(v) => {
                    let Some(t) = times.get_mut(*v) else {
                        let (variable, last) = (*v, num_variables - 1);
                        return Err(TreeError::Variable { variable, times: 1, last });
                    };
                    *t += 1;
                }
                Region::Split(parts) if parts.len() < 2 => {
                    return Err(TreeError::TooFewParts { region: index, parts: parts.len() });
                }
                Region::Split(parts) => {
                    for &part in parts {
                        if part >= index || std::mem::replace(&mut used[part], true) {
                            return Err(TreeError::Part { region: index, part });
                        }
                    }
                }
            }
        }
        if let Some(region) = used[..used.len() - 1].iter().position(|u| !u) {
            return Err(TreeError::Unused { region });
        }
        if let Some(variable) = times.iter().position(|&t| t != 1) {
            let last = num_variables - 1;
            return Err(TreeError::Variable { variable, times: times[variable], last });
        }
        Ok(Self { regions, num_variables })
    }

    /// Adds one variable after another: the tree of a matrix product state.
    ///
    /// # Panics
    /// If there are no variables.
    pub fn linear(num_variables: usize) -> Self {
        let mut b = TreeBuilder::default();
        let mut whole = b.variable(0);
        for v in 1..num_variables {
            let next = b.variable(v);
            whole = b.split(vec![whole, next]);
        }
        b.finish(num_variables)
    }

    /// Splits the variables into halves recursively, in their order.
    ///
    /// # Panics
    /// If there are no variables.
    pub fn balanced(num_variables: usize) -> Self {
        Self::halved(&(0..num_variables).collect::<Vec<_>>())
    }

    /// Splits the variables into halves recursively, in random order.
    ///
    /// # Panics
    /// If there are no variables.
    pub fn random(num_variables: usize, rng: &mut impl Rng) -> Self {
        let mut order: Vec<usize> = (0..num_variables).collect();
        order.shuffle(rng);
        Self::halved(&order)
    }

    fn halved(order: &[usize]) -> Self {
        fn halve(b: &mut TreeBuilder, order: &[usize]) -> usize {
            if let [v] = order {
                return b.variable(*v);
            }
            let (left, right) = order.split_at(order.len().div_ceil(2));
            let parts = vec![halve(b, left), halve(b, right)];
            b.split(parts)
        }
        let mut b = TreeBuilder::default();
        assert!(!order.is_empty(), "a region tree needs at least one variable");
        halve(&mut b, order);
        b.finish(order.len())
    }

    /// Splits an image into left and right halves, then into upper and lower halves, alternating
    /// down to pixels and their channels.
    ///
    /// Variable (y · width + x) · channels + c is channel c of the pixel in row y and column x.
    ///
    /// # Panics
    /// If there are no pixels or no channels.
    pub fn image(height: usize, width: usize, channels: usize) -> Self {
        assert!(height * width * channels > 0, "an image needs pixels and channels");
        let mut b = TreeBuilder::default();
        let image = Image { width, channels };
        image.cut(&mut b, (0, height), (0, width), true);
        b.finish(height * width * channels)
    }

    /// Splits the smallest square around the image whose side is a power of two, alternating upper
    /// and lower with left and right halves. The image is in the middle of the square, and halves
    /// without pixels are omitted.
    ///
    /// All regions of the same size are split in the same way, except at the edge of the image, so
    /// they can [share weights](super::Structure::share). Variables are in the order of
    /// [`image`](Self::image).
    ///
    /// # Panics
    /// If there are no pixels or no channels.
    pub fn aligned_image(height: usize, width: usize, channels: usize) -> Self {
        assert!(height * width * channels > 0, "an image needs pixels and channels");
        let mut b = TreeBuilder::default();
        let side = height.max(width).next_power_of_two();
        let image = Aligned {
            pixels: Image { width, channels },
            top: (side - height) / 2,
            left: (side - width) / 2,
            height,
        };
        image.cut(&mut b, [0, 0], [side, side]);
        b.finish(height * width * channels)
    }

    /// Parses a nested list of variable positions, such as `[[0, 1], [2, 3]]`.
    ///
    /// # Errors
    /// The text is not a nested list, or the list is not a tree.
    pub fn parse(text: &str) -> Result<Self, TreeError> {
        let mut b = TreeBuilder::default();
        let mut open: Vec<Vec<usize>> = Vec::new();
        let mut done = false;
        let mut expects_item = true;
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        while at < chars.len() {
            let syntax = |expected| TreeError::Syntax { expected, position: at + 1 };
            let item = match chars[at] {
                c if c.is_whitespace() => {
                    at += 1;
                    continue;
                }
                _ if done => return Err(syntax("nothing more")),
                '[' if expects_item => {
                    open.push(Vec::new());
                    at += 1;
                    continue;
                }
                c if c.is_ascii_digit() && expects_item => {
                    let end = chars[at..].iter().take_while(|c| c.is_ascii_digit()).count();
                    let digits: String = chars[at..at + end].iter().collect();
                    let v = digits.parse().map_err(|_| syntax("a smaller number"))?;
                    at += end;
                    b.variable(v)
                }
                ',' if !expects_item && !open.is_empty() => {
                    expects_item = true;
                    at += 1;
                    continue;
                }
                ']' if !expects_item => match open.pop() {
                    Some(parts) => {
                        at += 1;
                        b.split(parts)
                    }
                    None => return Err(syntax("nothing more")),
                },
                _ if expects_item => return Err(syntax("a number or '['")),
                _ => return Err(syntax("',' or ']'")),
            };
            expects_item = false;
            match open.last_mut() {
                Some(parts) => parts.push(item),
                None => done = true,
            }
        }
        if !done {
            return Err(TreeError::Syntax {
                expected: "']' or a number",
                position: chars.len() + 1,
            });
        }
        Self::new(b.regions)
    }

    /// The regions, each after its parts, and the whole set last.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The number of variables.
    pub fn num_variables(&self) -> usize {
        self.num_variables
    }

    /// The number of variables of each region.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = Vec::with_capacity(self.regions.len());
        for region in &self.regions {
            sizes.push(match region {
                Region::Variable(_) => 1,
                Region::Split(parts) => parts.iter().map(|&p| sizes[p]).sum(),
            });
        }
        sizes
    }

    /// A number for the kind of each region. Two regions have the same kind if one is the other
    /// shifted along the variables, with the same splits.
    pub fn kinds(&self) -> Vec<usize> {
        // The kind and the first variable of each region.
        let mut kinds: Vec<(usize, usize)> = Vec::with_capacity(self.regions.len());
        let mut known: BTreeMap<Vec<(usize, isize)>, usize> = BTreeMap::new();
        for region in &self.regions {
            let (cut, first) = match region {
                Region::Variable(v) => (Vec::new(), *v),
                Region::Split(parts) => {
                    let first = kinds[parts[0]].1;
                    let offset = |p: &usize| kinds[*p].1.cast_signed() - first.cast_signed();
                    (parts.iter().map(|p| (kinds[*p].0, offset(p))).collect(), first)
                }
            };
            let next = known.len();
            kinds.push((*known.entry(cut).or_insert(next), first));
        }
        kinds.into_iter().map(|(kind, _)| kind).collect()
    }
}

impl fmt::Display for RegionTree {
    /// Writes the tree as a nested list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        enum Step {
            Open(usize),
            Text(&'static str),
        }
        let mut steps = vec![Step::Open(self.regions.len() - 1)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Text(text) => f.write_str(text)?,
                Step::Open(region) => match &self.regions[region] {
                    Region::Variable(v) => write!(f, "{v}")?,
                    Region::Split(parts) => {
                        f.write_str("[")?;
                        steps.push(Step::Text("]"));
                        for (n, &part) in parts.iter().enumerate().rev() {
                            steps.push(Step::Open(part));
                            if n > 0 {
                                steps.push(Step::Text(", "));
                            }
                        }
                    }
                },
            }
        }
        Ok(())
    }
}

#[derive(Default)]
pub(super) struct TreeBuilder {
    regions: Vec<Region>,
}

impl TreeBuilder {
    pub(super) fn variable(&mut self, v: usize) -> usize {
        self.regions.push(Region::Variable(v));
        self.regions.len() - 1
    }

    pub(super) fn split(&mut self, parts: Vec<usize>) -> usize {
        self.regions.push(Region::Split(parts));
        self.regions.len() - 1
    }

    pub(super) fn finish(self, num_variables: usize) -> RegionTree {
        assert!(num_variables > 0, "a region tree needs at least one variable");
        RegionTree { regions: self.regions, num_variables }
    }
}

struct Image {
    width: usize,
    channels: usize,
}

impl Image {
    /// The channels of a pixel, one after another.
    fn pixel(&self, b: &mut TreeBuilder, y: usize, x: usize) -> usize {
        let first = (y * self.width + x) * self.channels;
        let mut pixel = b.variable(first);
        for v in first + 1..first + self.channels {
            let next = b.variable(v);
            pixel = b.split(vec![pixel, next]);
        }
        pixel
    }

    fn cut(
        &self,
        b: &mut TreeBuilder,
        y: (usize, usize),
        x: (usize, usize),
        upright: bool,
    ) -> usize {
        let half = |(from, to): (usize, usize)| usize::midpoint(from, to);
        let (height, width) = (y.1 - y.0, x.1 - x.0);
        let parts = if height == 1 && width == 1 {
            return self.pixel(b, y.0, x.0);
        } else if width > 1 && (upright || height == 1) {
            let middle = half(x);
            vec![self.cut(b, y, (x.0, middle), false), self.cut(b, y, (middle, x.1), false)]
        } else {
            let middle = half(y);
            vec![self.cut(b, (y.0, middle), x, true), self.cut(b, (middle, y.1), x, true)]
        };
        b.split(parts)
    }
}

/// An image within a larger square.
struct Aligned {
    pixels: Image,
    top: usize,
    left: usize,
    height: usize,
}

impl Aligned {
    /// The region of a rectangle of the square, given its upper left corner and its sides; `None`
    /// if it contains no pixels.
    fn cut(
        &self,
        b: &mut TreeBuilder,
        [y, x]: [usize; 2],
        [height, width]: [usize; 2],
    ) -> Option<usize> {
        let (bottom, right) = (self.top + self.height, self.left + self.pixels.width);
        if y + height <= self.top || y >= bottom || x + width <= self.left || x >= right {
            return None;
        }
        if height == 1 && width == 1 {
            return Some(self.pixels.pixel(b, y - self.top, x - self.left));
        }
        let (second, half) = if height >= width {
            ([y + height / 2, x], [height / 2, width])
        } else {
            ([y, x + width / 2], [height, width / 2])
        };
        match (self.cut(b, [y, x], half), self.cut(b, second, half)) {
            (Some(first), Some(second)) => Some(b.split(vec![first, second])),
            (first, second) => first.or(second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn every_kind_is_a_tree_over_all_variables() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        for d in [1, 2, 3, 7, 64, 1000] {
            for tree in [RegionTree::linear(d), RegionTree::balanced(d), RegionTree::random(d, rng)]
            {
                let checked = RegionTree::new(tree.regions().to_vec()).unwrap();
                assert_eq!(checked.num_variables(), d);
                assert_eq!(
                    RegionTree::parse(&tree.to_string()).unwrap().to_string(),
                    tree.to_string()
                );
            }
        }
        for (h, w, c) in [(1, 1, 1), (28, 28, 1), (3, 5, 3), (1, 9, 1), (32, 32, 3)] {
            for tree in [RegionTree::image(h, w, c), RegionTree::aligned_image(h, w, c)] {
                assert!(RegionTree::new(tree.regions().to_vec()).is_ok(), "{h}x{w}x{c}");
                assert_eq!(tree.num_variables(), h * w * c);
            }
        }
    }

    #[test]
    fn aligned_cuts_are_of_the_square_around() {
        assert_eq!(
            RegionTree::aligned_image(2, 4, 1).to_string(),
            "[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]"
        );
        assert_eq!(
            RegionTree::aligned_image(3, 3, 1).to_string(),
            "[[[[0, 1], [3, 4]], [2, 5]], [[6, 7], 8]]"
        );
        assert_eq!(RegionTree::aligned_image(1, 2, 2).to_string(), "[[0, 1], [2, 3]]");
    }

    #[test]
    fn regions_of_an_image_are_of_few_kinds() {
        let tree = RegionTree::aligned_image(28, 28, 1);
        let (sizes, kinds) = (tree.sizes(), tree.kinds());
        for size in [1, 2, 4] {
            let of_size = sizes.iter().zip(&kinds).filter(|(s, _)| **s == size);
            let kinds: std::collections::BTreeSet<usize> = of_size.map(|(_, k)| *k).collect();
            assert_eq!(kinds.len(), 1, "{size}");
        }
        assert_eq!(sizes.last(), Some(&784));
        // The same variables with other splits have another kind.
        let kinds = RegionTree::parse("[[[0, 1], 2], [3, [4, 5]]]").unwrap().kinds();
        assert_ne!(kinds[4], kinds[9]);
        assert_eq!(kinds[2], kinds[8]);
    }

    #[test]
    fn the_first_cut_of_an_image_is_left_and_right() {
        assert_eq!(RegionTree::image(2, 4, 1).to_string(), "[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]");
    }

    #[test]
    fn lists_that_are_not_trees_are_rejected() {
        for (text, part) in [
            ("", "']' or a number"),
            ("[0, 1", "']' or a number"),
            ("[0, 1]]", "nothing more"),
            ("[0 1]", "',' or ']'"),
            ("[0, a]", "a number or '['"),
            ("[[0], 1]", "at least 2"),
            ("[0, 0]", "variable 0 is in the tree 2 times"),
            ("[0, 2]", "variable 2"),
            ("[]", "a number or '['"),
            ("[0, 99999999999999999999999]", "a smaller number"),
        ] {
            let message = RegionTree::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn a_deep_list_is_read_without_recursion() {
        let tree = RegionTree::linear(100_000);
        assert_eq!(RegionTree::parse(&tree.to_string()).unwrap(), tree);
    }
}
