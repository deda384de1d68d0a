//! What looks like a secret, and is masked before a model reads it.
//!
//! Names and forms are those of the well-known scanners (gitleaks,
//! detect-secrets). A secret that looks like nothing in particular is not found:
//! this keeps them out of sight, it is no wall.

use regex::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

/// What stands for a secret.
pub const MASK: &str = "[masked]";

/// Words that make a name that of a secret, wherever they are in it.
const WORDS: [&str; 9] = [
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "CREDENTIAL",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    "AUTHTOKEN",
];

/// Words that do so at the end of a name of several.
const LAST: [&str; 8] = ["TOKEN", "KEY", "PASS", "PWD", "AUTH", "COOKIE", "SIGNATURE", "PAT"];

/// Credentials by their form.
static FORMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
        r"\bgh[pousr]_[A-Za-z0-9]{30,}",
        r"\bgithub_pat_[A-Za-z0-9_]{22,}",
        r"\bgl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{20,}",
        r"\bsk-[A-Za-z0-9_-]{20,}",
        r"\b(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{10,}",
        r"\bxox[a-z]-[A-Za-z0-9-]{10,}",
        r"\bxapp-[0-9]-[A-Za-z0-9-]{10,}",
        r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}",
        r"\bAIza[A-Za-z0-9_-]{35}",
        r"\bya29\.[A-Za-z0-9_-]{20,}",
        r"\bnpm_[A-Za-z0-9]{36}",
        r"\bpypi-[A-Za-z0-9_-]{50,}",
        r"\bhf_[A-Za-z0-9]{30,}",
        r"\bdo[opr]_v1_[a-f0-9]{64}",
        r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
        r"\bAGE-SECRET-KEY-1[A-Z0-9]{58}",
        r"\bglsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}",
        r"\bhv[sb]\.[A-Za-z0-9_-]{24,}",
        r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",
        r"(?i:\bbearer\s+)[A-Za-z0-9._~+/=-]{16,}",
    ];
    Regex::new(&forms.join("|")).ok()
});

/// The password of a URL.
static URL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:)([^\s/@]+)(@)").ok());

/// A value that is given to a name: `TOKEN=…`, `"password": "…"`.
static GIVEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"([A-Za-z_][A-Za-z0-9_-]*)(["']?\s*[:=]\s*)("[^"\n]+"|'[^'\n]+'|[^\s"',;&|)}\]]+)"#,
    )
    .ok()
});

/// A value without secrets. `name`: what it is the value of.
#[must_use]
pub fn mask<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret(name, value) { Cow::Borrowed(MASK) } else { mask_text(value) }
}

/// A text without secrets.
#[must_use]
pub fn mask_text(text: &str) -> Cow<'_, str> {
    // Too short for any of them.
    if text.len() < 6 {
        return Cow::Borrowed(text);
    }
    let text = replaced(&FORMS, Cow::Borrowed(text), |_| MASK.to_owned());
    let text = replaced(&URL, text, |found| format!("{}{MASK}{}", &found[1], &found[3]));
    replaced(&GIVEN, text, |found| {
        let (name, sign, value) = (&found[1], &found[2], &found[3]);
        let bare = value.trim_matches(['"', '\'']);
        if bare.contains(MASK) || !is_secret(name, bare) {
            return found[0].to_owned();
        }
        let quote = if bare.len() < value.len() { &value[..1] } else { "" };
        format!("{name}{sign}{quote}{MASK}{quote}")
    })
}

fn replaced<'a>(
    pattern: &LazyLock<Option<Regex>>,
    text: Cow<'a, str>,
    by: impl Fn(&Captures<'_>) -> String,
) -> Cow<'a, str> {
    let Some(pattern) = &**pattern else { return text };
    match pattern.replace_all(&text, by) {
        Cow::Borrowed(_) => text,
        Cow::Owned(replaced) => Cow::Owned(replaced),
    }
}

/// Whether what a name stands for is a secret.
fn is_secret(name: &str, value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    let is_harmless = value.len() < 4
        || matches!(value.to_ascii_lowercase().as_str(), "true" | "false" | "none" | "null")
        || (value.len() < 8 && value.bytes().all(|b| b.is_ascii_digit()))
        || value.starts_with(['/', '$', '<', '[', '{', '(']);
    if is_harmless {
        return false;
    }
    let words = words(name);
    let joined = words.concat();
    if WORDS.iter().any(|word| joined.contains(word)) {
        return true;
    }
    match words.last() {
        Some(last) if words.len() == 1 => last == "TOKEN",
        Some(last) if LAST.contains(&last.as_str()) => {
            // In code, names like `sort_key` stand for anything.
            let is_constant = !name.bytes().any(|b| b.is_ascii_lowercase());
            is_constant || last == "TOKEN" || is_random(value)
        }
        Some(_) | None => false,
    }
}

/// The words of a name, however it joins them.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let is_joint = !c.is_alphanumeric();
        if is_joint || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if !is_joint && let Some(word) = words.last_mut() {
            word.extend(c.to_uppercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_random(value: &str) -> bool {
    value.len() >= 16
        && !value.contains(char::is_whitespace)
        && value.bytes().any(|b| b.is_ascii_digit())
        && value.bytes().any(|b| b.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Put together here, so that no scanner finds them in this file.
    fn secrets() -> Vec<String> {
        let random = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
        let upper = "ABCDEFGHIJKLMNOP";
        vec![
            format!("AKIA{upper}"),
            format!("ghp_{}", &random[..36]),
            format!("github_pat_{random}"),
            format!("glpat-{}", &random[..20]),
            format!("sk-{random}"),
            format!("sk-ant-api03-{random}"),
            format!("sk_live_{}", &random[..24]),
            format!("xoxb-123456789012-{}", &random[..24]),
            format!("AIza{}", &random[..35]),
            format!("npm_{}", &random[..36]),
            format!("hf_{}", &random[..34]),
            format!("eyJ{0}.eyJ{0}.{0}", &random[..20]),
            format!("-----BEGIN RSA PRIVATE KEY-----\n{random}\n-----END RSA PRIVATE KEY-----"),
            format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{random}"),
        ]
    }

    #[test]
    fn secrets_are_known_by_their_form() {
        for secret in secrets() {
            let told = mask("x", &secret);
            assert_eq!(told, MASK, "{secret}");
            let within = format!("before {secret}");
            assert_eq!(mask_text(&within), format!("before {MASK}"), "{secret}");
        }
        let url = "postgres://me:hunter22@db/x";
        assert_eq!(mask("DATABASE_URL", url), format!("postgres://me:{MASK}@db/x"));
    }

    #[test]
    fn secrets_are_known_by_their_name() {
        for name in [
            "GITHUB_TOKEN",
            "API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "password",
            "MYSQL_PWD",
            "apiKey",
            "clientSecret",
            "db_passwd",
            "NPM_AUTH",
            "token",
        ] {
            assert_eq!(mask(name, "hunter22"), MASK, "{name}");
        }
        assert_eq!(mask("stripe_key", "a1b2c3d4e5f6a7b8c9"), MASK);
    }

    #[test]
    fn what_is_none_stays() {
        for (name, value) in [
            ("HOME", "/root"),
            ("OLDPWD", "/work"),
            ("PWD", "/work"),
            ("MAX_TOKENS", "4096"),
            ("TOKENIZERS_PARALLELISM", "false"),
            ("sort_key", "'name'"),
            ("KEYBOARD", "qwerty"),
            ("SSL_KEY", "/etc/ssl/key.pem"),
            ("key", "'alpha'"),
            ("SSH_AUTH_SOCK", "/tmp/agent"),
            ("task", "sk-learn"),
            ("note", "a token of thanks"),
        ] {
            assert_eq!(mask(name, value), value, "{name}");
        }
        assert_eq!(mask_text("ls -la; cd /tmp && make test"), "ls -la; cd /tmp && make test");
    }

    #[test]
    fn what_is_given_to_a_name_is_masked_in_a_text() {
        let text = "export DB_PASSWORD='hunter22' USER=me; curl -H 'Authorization: Bearer abcdefgh12345678'";
        let told = mask_text(text);
        assert_eq!(
            told,
            format!("export DB_PASSWORD='{MASK}' USER=me; curl -H 'Authorization: {MASK}'")
        );
        let dict = "{'user': 'me', 'api_key': 'abcd1234', \"token\": \"xyz12345\"}";
        let told = mask_text(dict);
        assert_eq!(told, format!("{{'user': 'me', 'api_key': '{MASK}', \"token\": \"{MASK}\"}}"));
    }

    proptest! {
        #[test]
        fn any_text_is_taken_and_masked_once(name in "\\PC{0,20}", text in "\\PC{0,300}") {
            let once = mask(&name, &text).into_owned();
            prop_assert_eq!(mask(&name, &once).into_owned(), once);
        }
    }
}
