//! Renders a screen as pixels, with the glyphs of GNU Unifont.
//!
//! Invariant: only one row of characters is held in memory, so that a large screen costs little.

use super::rows::{self, Cell};
use crate::palette::Rgb;
use sessile_protocol::Screen;
use std::io::Write;
use unifont_bitmap::Unifont;

/// Size of a narrow glyph.
const WIDTH: usize = 8;
const HEIGHT: usize = 16;

/// Up to this width in pixels, glyphs are drawn in double size: they are small for today's
/// displays, and for models that look at pictures.
const DOUBLED_WIDTH: usize = 2048;

#[derive(Debug, thiserror::Error)]
#[error("the picture could not be encoded: {0}")]
pub struct PictureError(#[from] png::EncodingError);

/// Returns the screen as a PNG. A character is 16 × 32 pixels, or 8 × 16 on screens of more
/// than 128 columns.
///
/// # Errors
///
/// Those of the encoder; none is known for a valid size.
pub fn png(screen: &Screen) -> Result<Vec<u8>, PictureError> {
    let (cols, rows) = rows::size(screen);
    let scale = if cols * WIDTH * 2 <= DOUBLED_WIDTH { 2 } else { 1 };
    let (width, height) = (cols * WIDTH * scale, rows * HEIGHT * scale);
    let mut bytes = Vec::new();
    let side = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let mut encoder = png::Encoder::new(&mut bytes, side(width), side(height));
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    if !screen.title.is_empty() {
        encoder.add_itxt_chunk("Title".to_owned(), screen.title.clone())?;
    }
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    let mut font = Box::new(Unifont::open());
    for number in 0..rows {
        let mut strip = Strip::new(cols);
        for cell in rows::row(screen, number) {
            strip.draw(&cell, &mut font);
        }
        strip.write(scale, &mut stream).map_err(png::EncodingError::from)?;
    }
    stream.finish()?;
    drop(writer);
    Ok(bytes)
}

/// A row of characters as pixels.
struct Strip {
    width: usize,
    pixels: Vec<Rgb>,
}

impl Strip {
    fn new(cols: usize) -> Self {
        let width = cols * WIDTH;
        Self { width, pixels: vec![Rgb(0, 0, 0); width * HEIGHT] }
    }

    fn draw(&mut self, cell: &Cell<'_>, font: &mut Unifont) {
        let left = cell.col * WIDTH;
        let glyph = glyph(cell, font);
        let right = left + cell.width * WIDTH;
        for (line, bits) in self.pixels.chunks_exact_mut(self.width).zip(glyph) {
            for (x, pixel) in line[left..right].iter_mut().enumerate() {
                let is_ink = bits & (0x8000 >> x) != 0;
                *pixel = if is_ink { cell.look.ink } else { cell.look.paper };
            }
        }
    }

    fn write(&self, scale: usize, out: &mut impl Write) -> std::io::Result<()> {
        let mut line = Vec::with_capacity(self.width * scale * 3);
        for pixels in self.pixels.chunks_exact(self.width) {
            line.clear();
            for Rgb(r, g, b) in pixels {
                for _ in 0..scale {
                    line.extend_from_slice(&[*r, *g, *b]);
                }
            }
            for _ in 0..scale {
                out.write_all(&line)?;
            }
        }
        Ok(())
    }
}

/// 16 lines of pixels, from the highest bit; a narrow cell uses the upper byte.
type Glyph = [u16; HEIGHT];

const UNDERLINE: usize = 14;
const STRIKE: usize = 8;

fn glyph(cell: &Cell<'_>, font: &mut Unifont) -> Glyph {
    let mut lines = [0; HEIGHT];
    for ch in cell.text.chars().filter(|ch| is_drawn(*ch)) {
        for (line, bits) in lines.iter_mut().zip(fitted(ch, cell.width, font)) {
            *line |= bits;
        }
    }
    let look = cell.look;
    if look.italic {
        for (y, line) in lines.iter_mut().enumerate() {
            // One pixel per four lines, around the line in the middle.
            *line = if y < HEIGHT / 2 { *line >> ((11 - y) / 4) } else { *line << ((y - 7) / 6) };
        }
    }
    if look.bold {
        lines.iter_mut().for_each(|line| *line |= *line >> 1);
    }
    if look.underline {
        lines[UNDERLINE] = u16::MAX;
    }
    if look.strikethrough {
        lines[STRIKE] = u16::MAX;
    }
    lines
}

/// Returns a glyph with the width of its cell.
fn fitted(ch: char, width: usize, font: &mut Unifont) -> Glyph {
    let bitmap = font.load_bitmap(u32::from(ch));
    let bytes = bitmap.get_bytes();
    let mut lines = [0; HEIGHT];
    for (y, line) in lines.iter_mut().enumerate() {
        *line = match (bitmap.is_wide(), width) {
            (true, 2) => u16::from_be_bytes([bytes[2 * y], bytes[2 * y + 1]]),
            (true, _) => squeezed(u16::from_be_bytes([bytes[2 * y], bytes[2 * y + 1]])),
            (false, 2) => u16::from(bytes[y]) << 4,
            (false, _) => u16::from(bytes[y]) << 8,
        };
    }
    lines
}

/// Merges pairs of pixel columns.
fn squeezed(bits: u16) -> u16 {
    (0..8).filter(|x| bits & (0xc000 >> (2 * x)) != 0).map(|x| 0x8000 >> x).sum()
}

/// Returns whether a character is drawn. The font has boxes for characters that only
/// control how others are drawn.
fn is_drawn(ch: char) -> bool {
    !matches!(
        ch,
        ' ' | '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3000}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
    )
}
