//! The process that draws one SVG as PNG, and then ends.
//!
//! An SVG may come from anywhere: it may be nested a thousand times, take all memory, or
//! name files. So it is drawn in a separate process with little memory and time, which
//! reads no file but fonts. The SVG comes on stdin, the picture goes to stdout; notes on
//! what is missing in it, or why there is none, go to stderr.

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{ImageHrefResolver, Options, Tree};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

/// Size limit of an SVG.
const LARGEST_SOURCE: u64 = 16 << 20;

/// Models scale down larger pictures.
const WIDEST: f32 = 1600.0;
const TALLEST: f32 = 1200.0;

/// Memory for the program itself, fonts, and layers of the largest picture.
const MEMORY: u64 = 768 << 20;

/// A chart takes some hundredths of a second.
const SECONDS: u64 = 3;

/// Readable families that are common on machines without a screen.
const FAMILIES: [&str; 4] = ["DejaVu Sans", "Liberation Sans", "Noto Sans", "FreeSans"];

pub(crate) fn main() -> ExitCode {
    limit();
    std::panic::set_hook(Box::new(|_| eprintln!("it has numbers that nothing can be drawn with")));
    match draw() {
        Ok(png) => {
            // Fails if the reader is gone.
            let _ = std::io::stdout().write_all(&png);
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Sets the limits, before anything is read.
fn limit() {
    let most = |amount| Rlimit { current: Some(amount), maximum: Some(amount) };
    let _ = setrlimit(Resource::As, most(MEMORY));
    let _ = setrlimit(Resource::Cpu, most(SECONDS));
    let _ = setrlimit(Resource::Core, most(0));
    // SAFETY: it sets a timer whose signal ends this process.
    unsafe { libc::alarm(2 * SECONDS as libc::c_uint) };
}

fn draw() -> Result<Vec<u8>, String> {
    let mut source = Vec::new();
    let read = std::io::stdin().take(LARGEST_SOURCE).read_to_end(&mut source);
    read.map_err(|error| error.to_string())?;
    let has = |word: &str| source.windows(word.len()).any(|part| part == word.as_bytes());
    let mut options = Options {
        // Neither files nor pictures inside of pictures.
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|_, _, _| None),
            resolve_string: Box::new(|_, _| None),
        },
        ..Options::default()
    };
    if has("<image") {
        eprintln!("pictures inside of the SVG are not drawn");
    }
    if has("text") {
        options.fontdb = Arc::new(fonts());
        if options.fontdb.is_empty() {
            eprintln!(
                "its text is not drawn, because this machine has no fonts; install some, such as \
                 fonts-dejavu-core"
            );
        }
    }
    let tree = Tree::from_data(&source, &options).map_err(|error| error.to_string())?;
    let size = tree.size();
    let scale = (WIDEST / size.width()).min(TALLEST / size.height()).min(1.0);
    let pixels = |length: f32| (length * scale).ceil().max(1.0) as u32;
    let picture = Pixmap::new(pixels(size.width()), pixels(size.height()));
    let mut picture = picture.ok_or("its size makes no sense")?;
    // Some viewers show transparency as black, the colour of most text.
    picture.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut picture.as_mut());
    picture.encode_png().map_err(|error| error.to_string())
}

fn fonts() -> Database {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    let families = || fonts.faces().flat_map(|face| face.families.iter().map(|(name, _)| name));
    let known = FAMILIES.iter().find(|family| families().any(|name| name == *family));
    let family = known.map(|name| (*name).to_owned()).or_else(|| families().next().cloned());
    // Missing families are replaced by this one.
    if let Some(family) = family {
        fonts.set_serif_family(&family);
        fonts.set_sans_serif_family(&family);
        fonts.set_monospace_family(&family);
        fonts.set_cursive_family(&family);
        fonts.set_fantasy_family(&family);
    }
    fonts
}
