//! Memory for tiles.

use bornite_kernels::Buffer;

#[test]
fn buffers_begin_at_a_line_and_clones_are_equal() {
    for len in [0, 1, 8, 1000] {
        let mut buffer = Buffer::<f32>::zeros(len);
        buffer.iter_mut().enumerate().for_each(|(n, x)| *x = n as f32);
        let copy = buffer.clone();
        assert_eq!(*buffer, *copy);
        assert_eq!((buffer.len(), copy.as_ptr() as usize % 64), (len, 0));
    }
}
