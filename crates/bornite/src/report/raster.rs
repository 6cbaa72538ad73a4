//! Images of RGB pixels, written as PNG.

use png::{BitDepth, ColorType, Compression, Encoder};

/// A rectangle of RGB pixels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Raster {
    pub(super) width: usize,
    pub(super) height: usize,
    rgb: Vec<u8>,
}

impl Raster {
    pub(super) fn new(width: usize, height: usize, ground: [u8; 3]) -> Self {
        Self { width, height, rgb: ground.repeat(width * height) }
    }

    pub(super) fn set(&mut self, x: usize, y: usize, color: [u8; 3]) {
        let at = 3 * (y * self.width + x);
        self.rgb[at..at + 3].copy_from_slice(&color);
    }

    /// Scales every pixel up to a square of this side.
    pub(super) fn enlarged(&self, times: usize) -> Self {
        let mut large = Self::new(self.width * times, self.height * times, [0; 3]);
        for y in 0..large.height {
            for x in 0..large.width {
                let at = 3 * (y / times * self.width + x / times);
                large.set(x, y, [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]);
            }
        }
        large
    }

    /// The bytes of a PNG file.
    pub(super) fn png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::High);
        let written = encoder.write_header().and_then(|mut out| {
            out.write_image_data(&self.rgb)?;
            out.finish()
        });
        written.expect("pixels fit the rectangle, and writing to memory does not fail");
        bytes
    }
}

/// A color scale from white through blue to nearly black.
pub(super) fn heat(share: f64) -> [u8; 3] {
    const STOPS: [[f64; 3]; 6] = [
        [247.0, 249.0, 252.0],
        [203.0, 220.0, 240.0],
        [137.0, 178.0, 221.0],
        [74.0, 125.0, 184.0],
        [38.0, 74.0, 134.0],
        [14.0, 28.0, 66.0],
    ];
    let at = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let below = (at as usize).min(STOPS.len() - 2);
    let part = at - below as f64;
    [0, 1, 2].map(|c| {
        let (a, b) = (STOPS[below][c], STOPS[below + 1][c]);
        (a + part * (b - a)).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_png_holds_its_pixels() {
        let mut raster = Raster::new(3, 2, [9, 9, 9]);
        raster.set(1, 0, [1, 2, 3]);
        let bytes = raster.png();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height, info.color_type), (3, 2, ColorType::Rgb));
        assert_eq!(pixels, raster.rgb);
        assert_eq!(raster.enlarged(2).rgb.len(), 4 * raster.rgb.len());
    }
}
