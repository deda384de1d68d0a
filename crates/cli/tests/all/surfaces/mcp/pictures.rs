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
