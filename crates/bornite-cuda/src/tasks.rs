//! The arguments of the kernels, with the same layout as in `kernels.cu` and `queries.cu`.

use cudarc::driver::DeviceRepr;

macro_rules! tasks {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct $name { $(pub(crate) $field: $type),* }

        #[expect(unsafe_code, reason = "only plain numbers are copied to the device")]
        // SAFETY: the struct is `repr(C)` and has the fields of its namesake in the kernels, all of
        // them numbers.
        unsafe impl DeviceRepr for $name {}
    )*};
}

tasks! {
    /// What changes from step to step.
    StepTask { rate: f32, epsilon: f32, keep: f32, row_weight: f32, clip: f32, count: i32, momentum: i32 }
    Contraction { w: i64, x: i64, y: i64, out: i64, sm: i32, sp: i32, sq: i32, m: i32, p: i32, q: i32, stride: i32, n: i32 }
    Descent { w: i64, e: i64, a: i64, b: i64, to_b: i64, k: i32, k1: i32, k2: i32, stride: i32 }
    WeightTask { out: i64, first: i32, last: i32, k: i32, k1: i32, k2: i32, unused: i32 }
    User { e: i32, a: i32, b: i32, unused: i32 }
    Gram { at: i64, out: i64, k: i32, columns: i32, rate: f32, unused: i32 }
    Leaf { from: i64, columns: i32, variable: i32, width: i32, to: i32, index: i32, unused: i32 }
    Pair { a: i32, b: i32, own: i32, out: i32, width: i32, index_a: i32, index_b: i32 }
    Settle { from: i64, to: i32, width: i32, index: i32, unused: i32 }
    Sum { to: i64, from: i64, len: i64, parts: i32, unused: i32 }
    Product {
        a: i64, b: i64, c: i64, second: i64,
        am: i32, aq: i32, a1: i32, a2: i32, bq: i32, bn: i32, b1: i32, b2: i32, cm: i32, c1: i32, c2: i32,
        m: i32, n: i32, q: i32, inner: i32,
        a_rows: i32, second_rows: i32, a_each: i32, b_each: i32,
        width: i32, a_is_weight: i32, b_is_weight: i32, conjugates: i32,
    }
    Codes { w: i64, out: i64, at: i32, columns: i32, width: i32, count: i32 }
    Elementwise { a: i64, b: i64, out: i64, a_slots: i32, b_slots: i32, a_kind: i32, b_kind: i32, width: i32, count: i32 }
    Draw { from: i64, table: i64, p: i64, at: i32, draws: i32, count: i32, width: i32, values: i32, kind: i32 }
    Permute { from: i64, to: i64, k: i32, k1: i32, k2: i32, side: i32 }
    Messages { at: i64, rows: i32, count: i32, width: i32, is_pure: i32 }
    Packing { at: i64, along_columns: i64, along_rows: i64, k: i32, k1: i32, k2: i32, unused: i32 }
    WeightInfo { at: i64, small: i64, k: i32, columns: i32, rate: f32, smoothing: f32, roughness: i64 }
}
