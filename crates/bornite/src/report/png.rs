//! Pictures of pixels as PNG.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

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

    /// Every pixel as a square of so many.
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
        let mut lines = ZlibEncoder::new(Vec::new(), Compression::best());
        let mut written = Ok(());
        for line in self.rgb.chunks_exact(3 * self.width.max(1)) {
            // The filter of the line: none.
            written =
                written.and_then(|()| lines.write_all(&[0])).and_then(|()| lines.write_all(line));
        }
        let (Ok(()), Ok(packed)) = (written, lines.finish()) else {
            unreachable!("writing to memory does not fail")
        };
        let mut header = Vec::new();
        header.extend((self.width as u32).to_be_bytes());
        header.extend((self.height as u32).to_be_bytes());
        // Eight bits a channel, RGB, and the only methods that there are.
        header.extend([8, 2, 0, 0, 0]);
        let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
        chunk(&mut out, *b"IHDR", &header);
        chunk(&mut out, *b"IDAT", &packed);
        chunk(&mut out, *b"IEND", &[]);
        out
    }
}

fn chunk(out: &mut Vec<u8>, name: [u8; 4], content: &[u8]) {
    out.extend((content.len() as u32).to_be_bytes());
    let start = out.len();
    out.extend(name);
    out.extend(content);
    let sum = crc32fast::hash(&out[start..]);
    out.extend(sum.to_be_bytes());
}

/// Bytes as text, for `data:` addresses.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |n: usize| u32::from(group.get(n).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for n in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * n) & 63) as usize] as char;
            out.push(if n > group.len() { '=' } else { digit });
        }
    }
    out
}

/// From white over blue to nearly black: the larger, the darker.
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
    use std::io::Read;

    use super::*;

    #[test]
    fn base64_by_hand() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn a_png_holds_its_pixels() {
        let mut raster = Raster::new(3, 2, [9, 9, 9]);
        raster.set(1, 0, [1, 2, 3]);
        let png = raster.png();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(png[16..24], [0, 0, 0, 3, 0, 0, 0, 2]);
        let length = u32::from_be_bytes(png[33..37].try_into().unwrap()) as usize;
        let mut lines = Vec::new();
        flate2::read::ZlibDecoder::new(&png[41..41 + length]).read_to_end(&mut lines).unwrap();
        assert_eq!(lines, [0, 9, 9, 9, 1, 2, 3, 9, 9, 9, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9]);
        assert_eq!(raster.enlarged(2).rgb.len(), 4 * raster.rgb.len());
    }
}
