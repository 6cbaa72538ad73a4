use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Widths by the number of variables of a region. For example, `1:12,2:16,32:24` means 12 for
/// single variables, 16 for regions of 2 to 31 variables, and 24 for larger ones.
///
/// ```
/// use bornite::structure::Widths;
///
/// let widths: Widths = "1:12,2:16,32:24".parse()?;
/// assert_eq!([1, 8, 784].map(|size| widths.of(size)), [12, 16, 24]);
/// assert_eq!("16".parse::<Widths>()?, Widths::from(16));
/// # Ok::<(), bornite::structure::WidthsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Widths(Vec<(usize, usize)>);

/// Why a text is not a list of widths.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a width; give a whole number of at least 1, such as 16, or widths by region size such as 1:12,2:16,32:24, with sizes increasing from 1"
)]
pub struct WidthsError {
    text: String,
}

impl Widths {
    /// The width of a region with this many variables.
    pub fn of(&self, size: usize) -> usize {
        let reached = self.0.iter().take_while(|(least, _)| *least <= size);
        reached.last().map_or(1, |(_, width)| *width)
    }

    /// The width of all regions, if all have the same.
    pub fn uniform(&self) -> Option<usize> {
        let first = self.0.first()?.1;
        self.0.iter().all(|(_, width)| *width == first).then_some(first)
    }

    /// The largest width.
    pub fn largest(&self) -> usize {
        self.0.iter().map(|(_, width)| *width).max().unwrap_or(1)
    }
}

impl From<usize> for Widths {
    fn from(width: usize) -> Self {
        Self(vec![(1, width)])
    }
}

impl From<&[(usize, usize)]> for Widths {
    /// Pairs of a region size and the width from that size on, with sizes increasing from 1.
    fn from(steps: &[(usize, usize)]) -> Self {
        Self(steps.to_vec())
    }
}

impl FromStr for Widths {
    type Err = WidthsError;

    fn from_str(text: &str) -> Result<Self, WidthsError> {
        let number = |s: &str| s.trim().parse::<usize>().ok().filter(|&n| n > 0);
        let step = |s: &str| s.split_once(':').and_then(|(a, b)| Some((number(a)?, number(b)?)));
        let one = number(text).map(|width| vec![(1, width)]);
        let list = one.or_else(|| text.split(',').map(step).collect::<Option<Vec<_>>>());
        let rises = |l: &Vec<(usize, usize)>| l[0].0 == 1 && l.is_sorted_by(|a, b| a.0 < b.0);
        list.filter(rises).map(Self).ok_or_else(|| WidthsError { text: text.to_owned() })
    }
}

impl fmt::Display for Widths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(_, width)] = self.0[..] {
            return write!(f, "{width}");
        }
        for (n, (size, width)) in self.0.iter().enumerate() {
            write!(f, "{}{size}:{width}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["16", "1:12,2:16,32:24,64:32"] {
            assert_eq!(text.parse::<Widths>().unwrap().to_string(), text);
        }
        for text in ["", "0", "x", "2:4", "1:0", "1:4,1:5", "1:4,8:5,4:6", "1:4,", "1:4;2:5"] {
            let message = text.parse::<Widths>().unwrap_err().to_string();
            assert!(message.contains("such as 16"), "{text}: {message}");
        }
    }
}
