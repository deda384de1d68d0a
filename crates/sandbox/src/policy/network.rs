//! Which hosts can be reached, in its written form: a word, or a list.

use std::fmt;

use super::hosts::{HostError, HostRule};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Which hosts can be reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// None but the session's own loopback.
    #[default]
    None,
    /// All that the machine reaches.
    Full,
    /// These, through a proxy that lets nothing else pass.
    Hosts(Vec<HostRule>),
}

impl Network {
    /// Parses `none`, `full`, or comma-separated hosts, the argument of `--network`.
    ///
    /// # Errors
    /// With the invalid host.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        match text {
            "none" => Ok(Self::None),
            "full" => Ok(Self::Full),
            hosts => hosts.split(',').map(str::parse).collect::<Result<_, _>>().map(Self::Hosts),
        }
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => to.serialize_str("none"),
            Self::Full => to.serialize_str("full"),
            Self::Hosts(hosts) => hosts.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Written)
    }
}

struct Written;

impl<'de> Visitor<'de> for Written {
    type Value = Network;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("\"none\", \"full\" or a list of hosts")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Network, E> {
        match word {
            "none" => Ok(Network::None),
            "full" => Ok(Network::Full),
            _ => Err(E::custom(format_args!(
                "unknown network {word:?}; write \"none\", \"full\" or a list of hosts"
            ))),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Network, A::Error> {
        let mut hosts = Vec::new();
        while let Some(host) = seq.next_element()? {
            hosts.push(host);
        }
        Ok(Network::Hosts(hosts))
    }
}

#[cfg(feature = "schema")]
mod schema {
    use utoipa::openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, RefOr, Schema, schema::Type};

    impl utoipa::PartialSchema for super::Network {
        fn schema() -> RefOr<Schema> {
            let word =
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["none", "full"]));
            let hosts = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::String));
            OneOfBuilder::new().item(word).item(hosts).into()
        }
    }

    impl utoipa::ToSchema for super::Network {}
}
