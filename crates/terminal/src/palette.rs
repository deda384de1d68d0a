//! The colours of a terminal, as in xterm.

use sessile_protocol::Color;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rgb(pub(crate) u8, pub(crate) u8, pub(crate) u8);

pub(crate) const FOREGROUND: Rgb = Rgb(0xe5, 0xe5, 0xe5);
pub(crate) const BACKGROUND: Rgb = Rgb(0, 0, 0);

const BASIC: [Rgb; 16] = [
    Rgb(0x00, 0x00, 0x00),
    Rgb(0xcd, 0x00, 0x00),
    Rgb(0x00, 0xcd, 0x00),
    Rgb(0xcd, 0xcd, 0x00),
    Rgb(0x00, 0x00, 0xee),
    Rgb(0xcd, 0x00, 0xcd),
    Rgb(0x00, 0xcd, 0xcd),
    Rgb(0xe5, 0xe5, 0xe5),
    Rgb(0x7f, 0x7f, 0x7f),
    Rgb(0xff, 0x00, 0x00),
    Rgb(0x00, 0xff, 0x00),
    Rgb(0xff, 0xff, 0x00),
    Rgb(0x5c, 0x5c, 0xff),
    Rgb(0xff, 0x00, 0xff),
    Rgb(0x00, 0xff, 0xff),
    Rgb(0xff, 0xff, 0xff),
];

pub(crate) fn rgb(color: Color) -> Rgb {
    match color {
        Color::Indexed(index) => indexed(index),
        Color::Rgb(r, g, b) => Rgb(r, g, b),
    }
}

/// Returns a colour of the palette: 16 names, a cube of 6 × 6 × 6, and 24 greys.
pub(crate) fn indexed(index: u8) -> Rgb {
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    match index {
        0..=15 => BASIC[usize::from(index)],
        16..=231 => {
            let cube = index - 16;
            Rgb(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232..=255 => {
            let grey = 8 + 10 * (index - 232);
            Rgb(grey, grey, grey)
        }
    }
}

/// Returns the colour halfway between two others.
pub(crate) fn between(Rgb(r, g, b): Rgb, Rgb(x, y, z): Rgb) -> Rgb {
    Rgb(r.midpoint(x), g.midpoint(y), b.midpoint(z))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cube_and_the_greys_are_those_of_xterm() {
        assert_eq!(indexed(16), Rgb(0, 0, 0));
        assert_eq!(indexed(208), Rgb(255, 135, 0));
        assert_eq!(indexed(231), Rgb(255, 255, 255));
        assert_eq!(indexed(232), Rgb(8, 8, 8));
        assert_eq!(indexed(255), Rgb(238, 238, 238));
    }
}
