//! Pictures hold what they show.
