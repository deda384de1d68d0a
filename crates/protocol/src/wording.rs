//! Types in the words of people who write JSON. The deserializers name the program's own
//! types, which nobody outside knows.

/// Returns the expected value in plain words, from the name that serde has for it.
#[must_use]
pub fn wanted(expected: &str) -> String {
    let plain = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" | "u128" => "a whole number, 0 or more",
        "i8" => "a whole number from -128 to 127",
        "i16" => "a whole number from -32768 to 32767",
        "i32" => "a whole number from -2147483648 to 2147483647",
        "i64" | "isize" | "i128" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "a borrowed string" | "a character" | "path string" => "a text",
        "a map" | "map" => "an object",
        "a sequence" | "a tuple" => "an array",
        "unit" => "null",
        "string or map" | "variant identifier" => "a text or an object",
        ours => return of_type(ours),
    };
    plain.to_owned()
}

/// Returns the kind of a type of the program.
fn of_type(expected: &str) -> String {
    let kind = expected.split(' ').next().unwrap_or_default();
    let is_named = expected.split(' ').count() > 1;
    let plain = match kind {
        "struct" if is_named => "an object",
        "tuple" if is_named => "an array",
        "enum" | "internally" | "adjacently" if is_named => "a text or an object",
        "unit" if is_named => "null",
        _ => expected,
    };
    plain.to_owned()
}

/// Rewords a deserializer's message, such as `invalid type: string "x", expected u64`.
/// Other messages stay as they are.
#[must_use]
pub fn reworded(message: &str) -> String {
    let is_about_kind = ["invalid type: ", "invalid value: ", "invalid length "]
        .iter()
        .any(|beginning| message.starts_with(beginning));
    match message.rsplit_once(", expected ") {
        Some((_, expected)) if is_about_kind => format!("must be {}", wanted(expected)),
        Some(_) | None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_the_program_are_told_as_kinds_of_values() {
        assert_eq!(wanted("struct Price"), "an object");
        assert_eq!(wanted("struct variant Files::Copy"), "an object");
        assert_eq!(wanted("u32"), "a whole number from 0 to 4294967295");
        assert_eq!(wanted("a duration such as 30s"), "a duration such as 30s");
        let told = reworded("invalid type: string \"a, expected b\", expected f64");
        assert_eq!(told, "must be a number");
        assert_eq!(reworded("missing field `a`"), "missing field `a`");
    }
}
