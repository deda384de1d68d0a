//! Masks what looks like a secret before a model reads it.
//!
//! Names and forms are those of well-known scanners (gitleaks, detect-secrets). A secret
//! without a recognizable form is not found: this reduces exposure, it is not a barrier.

mod names;
mod options;

use regex::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Replaces a secret.
pub const MASK: &str = "[masked]";

/// Credentials that are recognized by their form.
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

/// What an HTTP header has to show, unless it comes from a variable.
static AUTHORIZATION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)(\bauthorization\\?["']?\s*[:=,]\s*\\?["']?(?:bearer|basic|token)\s+)([^\s"'\\${\[][^\s"'\\]*)"#)
        .ok()
});

/// A value that is assigned to a name: `TOKEN=…`, `"password": "…"`, `environ["KEY"] = …`.
static GIVEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"([A-Za-z_][A-Za-z0-9_-]*)(\\?["']?\]?\s*(?:=>|:=|[:=])\s*)"#,
        r#"(\\"[^"\\\n]+\\"|"[^"\n]+"|'[^'\n]+'|[^\s"',;&|)}\]\\]+)"#,
    ))
    .ok()
});

/// The same as a pair: `setenv("KEY", "…")`.
static PAIR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"\(\s*\\?["']([A-Za-z_][A-Za-z0-9_-]*)(\\?["']\s*,\s*)"#,
        r#"(\\"[^"\\\n]+\\"|"[^"\n]+"|'[^'\n]+')"#,
    ))
    .ok()
});

/// Masks the secrets in the value of `name`.
#[must_use]
pub fn mask<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if names::is_secret_variable(name, value) { Cow::Borrowed(MASK) } else { mask_text(value) }
}

/// Masks the secrets in a text.
#[must_use]
pub fn mask_text(text: &str) -> Cow<'_, str> {
    // Too short for any of them.
    if text.len() < 6 {
        return Cow::Borrowed(text);
    }
    let text = replaced(&FORMS, Cow::Borrowed(text), |_| MASK.to_owned());
    let text = replaced(&URL, text, |found| format!("{}{MASK}{}", &found[1], &found[3]));
    let text = replaced(&AUTHORIZATION, text, |found| format!("{}{MASK}", &found[1]));
    options::mask(mask_given(&PAIR, mask_given(&GIVEN, text)))
}

/// Masks values assigned to secret names. A value may contain further names, as in a
/// connection string or an object, so the search continues right after the sign.
fn mask_given<'a>(pattern: &LazyLock<Option<Regex>>, text: Cow<'a, str>) -> Cow<'a, str> {
    let Some(given) = &**pattern else { return text };
    let (mut masked, mut written, mut at) = (String::new(), 0, 0);
    while let Some(found) = given.captures_at(&text, at) {
        let (Some(sign), Some(value)) = (found.get(2), found.get(3)) else { break };
        let is_secret =
            !value.as_str().contains(MASK) && names::is_secret(&found[1], value.as_str());
        if is_secret {
            masked.push_str(&text[written..value.start()]);
            masked.push_str(&options::masked(value.as_str()));
            written = value.end();
        }
        at = if is_secret { value.end() } else { sign.end() };
    }
    if written == 0 {
        return text;
    }
    masked.push_str(&text[written..]);
    Cow::Owned(masked)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Assembled here, so that no scanner finds them in this file.
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
            "DBPWD",
            "PGPASS",
            "mypass",
            "PRIVATE_KEY",
            "credentials",
        ] {
            assert_eq!(mask(name, "hunter22"), MASK, "{name}");
        }
        assert_eq!(mask("stripe_key", "a1b2c3d4e5f6a7b8c9"), MASK);
        for shown in ["('me', 'hunter2')", "{'pw': 'hunter2'}", r"$'a\nhunter2'", "'hunter2'"] {
            assert_eq!(mask("credentials", shown), MASK, "{shown}");
        }
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
            ("compass", "north-east"),
            ("credentials", "/etc/credentials"),
            ("credentials", "<Credentials object>"),
            ("sort_key", "('name', 'age')"),
        ] {
            assert_eq!(mask(name, value), value, "{name}");
        }
        for text in [
            "ls -la; cd /tmp && make test",
            "curl -H \"Authorization: Bearer $TOKEN\"",
            "{'Authorization': f'Bearer {token}'}",
            "fields = ['password', 'address']",
            "f('name', 'hunter2')",
        ] {
            assert_eq!(mask_text(text), text);
        }
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

    #[test]
    fn what_has_names_within_a_value_is_masked_there() {
        for (text, told) in [
            (
                "DSN=\"Server=x;Password=hunter2;Port=1\"",
                "DSN=\"Server=x;Password=[masked];Port=1\"",
            ),
            ("x={password:\"hunter2\",user:\"me\"}", "x={password:\"[masked]\",user:\"me\"}"),
            (
                "login({user: 'me', pass_word: 'hunter2'})",
                "login({user: 'me', pass_word: '[masked]'})",
            ),
            ("['password' => 'hunter2']", "['password' => '[masked]']"),
            (r#"{\"password\":\"hunter2\"}"#, r#"{\"password\":\"[masked]\"}"#),
            ("([password]=\"hunter2\" [n]=\"1\" )", "([password]=\"[masked]\" [n]=\"1\" )"),
            ("os.environ[\"API_KEY\"] = 'hunter2'", "os.environ[\"API_KEY\"] = '[masked]'"),
            ("os.putenv(\"API_KEY\", 'hunter2')", "os.putenv(\"API_KEY\", '[masked]')"),
            ("[('password', 'hunter2')]", "[('password', '[masked]')]"),
            ("Authorization: Basic bWU6aHVudGVy", "Authorization: Basic [masked]"),
            ("-H \"Authorization: Bearer hunter2\" x", "-H \"Authorization: Bearer [masked]\" x"),
            ("{\"Authorization\": \"token hunter2\"}", "{\"Authorization\": \"token [masked]\"}"),
        ] {
            assert_eq!(mask_text(text), told);
        }
    }

    #[test]
    fn what_is_given_as_an_option_is_masked() {
        for (text, told) in [
            ("app --password hunter2 --user me", "app --password [masked] --user me"),
            ("app --api-key 'hunter2 x'", "app --api-key '[masked]'"),
            ("app -password hunter2", "app -password [masked]"),
            ("curl -u user:hunter2 http://x/", "curl -u user:[masked] http://x/"),
            ("curl -s -uuser:hunter2 -U me:hunter3 x", "curl -s -uuser:[masked] -U me:[masked] x"),
            ("curl --user 'user:hunter2' x", "curl --user 'user:[masked]' x"),
            ("mysql -uroot -phunter2 db", "mysql -uroot -p[masked] db"),
            ("mysqldump -p'hunter2' db", "mysqldump -p'[masked]' db"),
            ("sshpass -p hunter2 ssh x", "sshpass -p [masked] ssh x"),
            ("docker login -u me -p hunter2", "docker login -u me -p [masked]"),
            ("redis-cli -a hunter2 ping", "redis-cli -a [masked] ping"),
        ] {
            assert_eq!(mask_text(text), told);
        }
        for text in [
            "docker run -u node:node -p 8080:8080 x",
            "mysql -u root -p production",
            "mkdir -p /some/where",
            "app --password-file secrets.txt --token --verbose",
            "app --password $PASSWORD",
            "curl -u $USER:$PASSWORD x",
            "docker login --password-stdin registry",
            "sort --key second",
        ] {
            assert_eq!(mask_text(text), text);
        }
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn any_text_is_taken_and_masked_once(name in "\\PC{0,20}", text in "\\PC{0,300}") {
            let once = mask(&name, &text).into_owned();
            prop_assert_eq!(mask(&name, &once).into_owned(), once);
        }
    }
}
