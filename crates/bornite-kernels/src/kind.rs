//! The kinds of messages.

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The identity matrix: no variable is observed. Nothing is stored.
    Identity = 0,
    /// v vᴴ: all variables have values. The vector v is stored.
    Pure = 1,
    /// A Hermitian positive semidefinite matrix.
    Mixed = 2,
}

impl Kind {
    /// All kinds, indexed by their discriminants.
    pub const ALL: [Self; 3] = [Self::Identity, Self::Pure, Self::Mixed];

    /// The kind of a Kronecker product of two messages, and of a sum over that product.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        if self == other { self } else { Self::Mixed }
    }

    /// The number of entries that are stored for a layer of this width.
    pub fn numbers(self, width: usize) -> usize {
        match self {
            Self::Identity => 0,
            Self::Pure => width,
            Self::Mixed => width * width,
        }
    }
}
