//! The process that copies a session's layer as the owner of all files in it, started by
//! clients that copy a session.

use std::path::Path;
use std::process::ExitCode;

pub(crate) fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(2);
    let (Some(from), Some(to)) = (words.next(), words.next()) else {
        eprintln!("a layer is copied by a client, not by hand");
        return ExitCode::from(2);
    };
    match sessile_client::copy_layer_as_owner(Path::new(&from), Path::new(&to)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
