//! Values that a model can look at.

use super::peer::Peer;
use super::{exact, text};
use serde_json::{Value, json};
use sessile_testkit::{harness, needs};

/// A PNG of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn images(result: &Value) -> Vec<&Value> {
    let content = result["content"].as_array().unwrap();
    content.iter().filter(|block| block["type"] == "image").collect()
}

#[test]
fn a_value_with_a_picture_is_an_image() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "all"]);
    let code = format!(
        "import base64\nclass Dot:\n    def _repr_png_(self): return base64.b64decode('{PIXEL}')\nDot()"
    );
    let result = peer.runtime(&json!({"action": "eval", "command": code}));
    assert_eq!(images(&result).len(), 1, "{result}");
    assert_eq!(images(&result)[0]["mimeType"], "image/png");
    assert_eq!(images(&result)[0]["data"], PIXEL);
    // Once: a model does not read base64.
    assert!(!exact(&result).to_string().contains(PIXEL), "{result}");
    assert!(!text(&result).contains(PIXEL), "{result}");
    let again = peer.runtime(&json!({"action": "eval", "run": 1}));
    assert_eq!(images(&again).len(), 1, "{again}");
    let id = exact(&result)["session_id"].as_str().unwrap().to_owned();
    let call = json!({"session_id": id, "command": "Dot()", "language": "python"});
    assert_eq!(images(&peer.call("session_exec", &call)).len(), 1);
    let large = "class Big:\n    def _repr_jpeg_(self): return bytes(900_000)\nBig()";
    let result = peer.runtime(&json!({"action": "eval", "command": large}));
    assert!(images(&result).is_empty() && text(&result).contains("a picture of 900000 bytes"));
    assert!(result.to_string().len() < 10_000, "{}", result.to_string().len());
    peer.close();
}

#[test]
fn a_picture_that_is_printed_is_an_image() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "all"]);
    let print = format!("echo {PIXEL} | base64 -d");
    let result = peer.runtime(&json!({"action": "exec", "command": print}));
    assert_eq!(images(&result).len(), 1, "{result}");
    assert_eq!(
        (&images(&result)[0]["mimeType"], &images(&result)[0]["data"]),
        (&json!("image/png"), &json!(PIXEL))
    );
    assert!(!exact(&result).to_string().contains(PIXEL), "{result}");
    let id = exact(&result)["session_id"].as_str().unwrap().to_owned();
    let svg = "echo '<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"></svg>'";
    let result = peer.call("session_exec", &json!({"session_id": id, "command": svg}));
    assert_eq!(images(&result)[0]["mimeType"], "image/png", "{result}");
    assert!(text(&result).contains("<svg"), "it can be read, too: {result}");
    let more = format!("echo first; {print}");
    let result = peer.runtime(&json!({"action": "exec", "command": more}));
    assert_eq!(images(&result), [] as [&Value; 0]);
    peer.close();
}

#[test]
fn the_bytes_of_a_picture_are_an_image_in_node() {
    if !needs::has_program("node") {
        return;
    }
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let mut eval =
        |code: &str| peer.runtime(&json!({"action": "eval", "language": "node", "command": code}));
    let result = eval(&format!("const dot = Buffer.from('{PIXEL}', 'base64'); dot"));
    assert_eq!(images(&result).len(), 1, "{result}");
    assert_eq!(
        (&images(&result)[0]["mimeType"], &images(&result)[0]["data"]),
        (&json!("image/png"), &json!(PIXEL))
    );
    assert!(text(&result).contains("<Buffer 89 50 4e 47"), "{}", text(&result));
    // Wherever the bytes lie, and whatever they say of themselves.
    let sly = "const larger = new Uint8Array(dot.length + 7); larger.set(dot, 7);\
               const view = larger.subarray(7);\
               Object.defineProperty(view, 'byteLength', {value: 3});\
               Object.defineProperty(view, 'buffer', {get() { throw 1 }}); view";
    assert_eq!(images(&eval(sly))[0]["data"], PIXEL);
    let jpeg = eval("new Uint8Array([255, 216, 255, 224, 0])");
    assert_eq!(images(&jpeg)[0]["mimeType"], "image/jpeg");
    for code in ["Buffer.from('hello')", "dot.subarray(0, 5)", "new Proxy(dot, {})", "[...dot]"] {
        assert_eq!(images(&eval(code)), [] as [&Value; 0], "{code}");
    }
    peer.close();
}

#[test]
fn a_figure_is_an_image() {
    let Some(python) = needs::installed("SESSILE_TEST_CLOUDPICKLE") else { return };
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let started = peer.call("session_start", &json!({"shell": python}));
    let code =
        "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.figure()\nplt.plot([2, 1])";
    let call =
        json!({"session_id": exact(&started)["session_id"], "command": code, "timeout_ms": 0});
    let result = peer.call("session_exec", &call);
    assert_eq!(images(&result).len(), 2, "{}", text(&result));
    peer.close();
}

/// The size of a PNG, and the colour of one of its pixels.
fn look(image: &Value, at: (usize, usize)) -> ((u32, u32), [u8; 3]) {
    use base64::Engine;
    let data = image["data"].as_str().expect("base64");
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).expect("base64");
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let frame = reader.next_frame(&mut pixels).expect("a picture");
    let place = at.1 * frame.line_size + at.0 * frame.color_type.samples();
    ((frame.width, frame.height), [pixels[place], pixels[place + 1], pixels[place + 2]])
}

const RED: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='4000' height='40'>\
                   <rect width='2000' height='40' fill='#f00'/></svg>";

#[test]
fn an_svg_is_drawn_as_png() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let code = format!(
        "class Svg:\n    def __init__(self, text): self.text = text\n    \
         def _repr_svg_(self): return self.text\nSvg(\"{RED}\")"
    );
    let result = peer.runtime(&json!({"action": "eval", "command": code}));
    let drawn = images(&result);
    assert_eq!(drawn.len(), 1, "{result}");
    assert_eq!(drawn[0]["mimeType"], "image/png");
    assert_eq!(look(drawn[0], (10, 5)), ((1600, 16), [255, 0, 0]));
    assert_eq!(look(drawn[0], (1590, 5)).1, [255, 255, 255], "what is empty is white");
    assert!(!result.to_string().contains("<svg"), "once: {result}");

    // Text is there, or it is told that there are no fonts.
    let code = "Svg(\"<svg xmlns='http://www.w3.org/2000/svg' width='200' height='60'>\
                <text x='5' y='40' font-size='40' font-family='Nowhere'>HHHH</text></svg>\")";
    let result = peer.runtime(&json!({"action": "eval", "command": code}));
    let has_dark = |image| (0..200).any(|x| look(image, (x, 30)).1[0] < 100);
    let is_told = text(&result).contains("this machine has no fonts");
    assert!(has_dark(images(&result)[0]) != is_told, "{}", text(&result));
    peer.close();
}

#[test]
fn a_hostile_svg_reads_no_file_and_ends_soon() {
    let h = harness!();
    std::fs::write(h.path("red.svg"), RED).unwrap();
    let mut peer = Peer::start(&h, &[]);
    let class = "class Svg:\n    def __init__(self, text): self.text = text\n    \
                 def _repr_svg_(self): return self.text\n";
    peer.runtime(&json!({"action": "eval", "command": class}));
    let mut draw = |body: &str| {
        let code = format!(
            "Svg('<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"40\">' + {body} + '</svg>')"
        );
        peer.runtime(&json!({"action": "eval", "command": code}))
    };
    let path = h.path("red.svg");
    let result =
        draw(&format!("'<image width=\"40\" height=\"40\" href=\"{}\"/>'", path.display()));
    assert_eq!(look(images(&result)[0], (5, 5)).1, [255, 255, 255], "no file is drawn");
    assert!(text(&result).contains("are not drawn"), "{}", text(&result));
    for (body, why) in [
        ("'<g opacity=\"0.5\">' * 100000 + '</g>' * 100000", "cannot be drawn"),
        // Ten to the eleventh.
        (
            "'<defs><g id=\"u0\"><rect width=\"1\" height=\"1\"/></g>' + ''.join('<g id=\"u%d\">%s</g>' \
             % (i, ('<use href=\"#u%d\"/>' % (i - 1)) * 10) for i in range(1, 12)) + '</defs><use href=\"#u11\"/>'",
            "cannot be drawn",
        ),
        ("'<'", "cannot be drawn"),
    ] {
        let result = draw(body);
        assert!(images(&result).is_empty(), "{body}");
        assert!(text(&result).contains(why), "{body}: {}", text(&result));
    }
    // What takes too long is given up.
    let slow = "class Slow:\n    def _repr_svg_(self): return '<svg xmlns=\"http://www.w3.org/2000/svg\" \
                width=\"1600\" height=\"1200\"><filter id=\"f\"><feGaussianBlur stdDeviation=\"500\"/></filter>' \
                + '<rect width=\"1600\" height=\"1200\" filter=\"url(#f)\"/>' * 5000 + '</svg>'\nSlow()";
    let result = peer.runtime(&json!({"action": "eval", "command": slow}));
    assert!(text(&result).contains("it takes too long"), "{}", text(&result));
    peer.close();
}

#[test]
fn a_text_or_buffer_that_is_an_svg_is_an_image_in_node() {
    if !needs::has_program("node") {
        return;
    }
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let mut eval =
        |code: &str| peer.runtime(&json!({"action": "eval", "language": "node", "command": code}));
    for code in [
        format!("const red = \"{RED}\"; red"),
        "Buffer.from(red)".to_owned(),
        "`<?xml version=\"1.0\"?>\\n<!-- mine -->${red}\\n`".to_owned(),
    ] {
        let result = eval(&code);
        assert_eq!(look(images(&result)[0], (10, 5)).1, [255, 0, 0], "{code}");
    }
    for code in ["red + red.length", "'a <svg></svg>'", "Buffer.from('<html></svg>')"] {
        assert!(images(&eval(code)).is_empty(), "{code}");
    }
    peer.close();
}
