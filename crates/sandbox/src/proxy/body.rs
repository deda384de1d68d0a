//! How many of a client's bytes belong to the checked request. What follows would be
//! another request, which was not checked. Pure.

/// The rest of a request's body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    None,
    Length(u64),
    Chunked(Chunk),
    /// A tunnel has no end of its own.
    Endless,
}

/// The position in a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    /// In the line with the size of the next chunk.
    Size(Vec<u8>),
    /// In the data of a chunk, or in the line end behind it.
    Data(u64),
    DataEnd(u8),
    /// In the lines after the last chunk.
    Trailer(Vec<u8>),
    Done,
}

/// The longest line between chunks.
const LONGEST_LINE: usize = 4 << 10;

/// The body does not fit its head.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Body {
    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunk::Size(Vec::new()))
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::None => true,
            Self::Length(left) => *left == 0,
            Self::Chunked(chunk) => *chunk == Chunk::Done,
            Self::Endless => false,
        }
    }

    /// Returns how many of these next bytes belong to the body.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match self {
            Self::None => Ok(0),
            Self::Endless => Ok(bytes.len()),
            Self::Length(left) => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                Ok(taken)
            }
            Self::Chunked(chunk) => {
                let mut at = 0;
                while at < bytes.len() && *chunk != Chunk::Done {
                    at += chunk.take(&bytes[at..])?;
                }
                Ok(at)
            }
        }
    }
}

impl Chunk {
    /// Takes at least one byte.
    fn take(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match self {
            Self::Size(line) => {
                line.push(bytes[0]);
                if line.ends_with(b"\r\n") {
                    *self = match size(line)? {
                        0 => Self::Trailer(Vec::new()),
                        size => Self::Data(size),
                    };
                } else if line.len() > LONGEST_LINE || bytes[0] == b'\n' {
                    return Err(Malformed);
                }
                Ok(1)
            }
            Self::Data(left) => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                if *left == 0 {
                    *self = Self::DataEnd(b'\r');
                }
                Ok(taken)
            }
            Self::DataEnd(expected) => {
                *self = match (*expected, bytes[0]) {
                    (b'\r', b'\r') => Self::DataEnd(b'\n'),
                    (b'\n', b'\n') => Self::Size(Vec::new()),
                    _ => return Err(Malformed),
                };
                Ok(1)
            }
            Self::Trailer(line) => {
                line.push(bytes[0]);
                if line == b"\r\n" {
                    *self = Self::Done;
                } else if line.ends_with(b"\r\n") {
                    line.clear();
                } else if line.len() > LONGEST_LINE || bytes[0] == b'\n' {
                    return Err(Malformed);
                }
                Ok(1)
            }
            Self::Done => Err(Malformed),
        }
    }
}

fn size(line: &[u8]) -> Result<u64, Malformed> {
    let line = std::str::from_utf8(&line[..line.len() - 2]).map_err(|_| Malformed)?;
    let digits = line.split(';').next().unwrap_or_default();
    let is_number =
        (1..=15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_number || line.contains(['\r', '\0']) {
        return Err(Malformed);
    }
    u64::from_str_radix(digits, 16).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how much belongs to the body, at once and byte by byte.
    fn taken(body: impl Fn() -> Body, bytes: &[u8]) -> Result<(usize, bool), Malformed> {
        let mut whole = body();
        let at_once = whole.take(bytes).map(|taken| (taken, whole.is_over()));
        let (mut slow, mut sum) = (body(), Ok::<usize, Malformed>(0));
        for byte in bytes {
            sum = sum.and_then(|sum| Ok(sum + slow.take(&[*byte])?));
        }
        assert_eq!(at_once.is_ok(), sum.is_ok());
        assert_eq!(at_once.as_ref().ok().map(|(taken, _)| *taken), sum.ok());
        at_once
    }

    #[test]
    fn what_comes_after_a_body_is_not_taken() {
        assert_eq!(taken(|| Body::None, b"GET /"), Ok((0, true)));
        assert_eq!(taken(|| Body::Length(3), b"abcGET"), Ok((3, true)));
        assert_eq!(taken(|| Body::Length(9), b"abc"), Ok((3, false)));
        assert_eq!(taken(|| Body::Endless, b"abc"), Ok((3, false)));
        let chunks = b"3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\nGET / HTTP/1.1";
        assert_eq!(taken(Body::chunked, chunks), Ok((chunks.len() - 14, true)));
    }

    #[test]
    fn chunks_that_are_none_are_refused() {
        for bytes in [
            &b"x\r\n"[..],
            b"\r\n",
            b"+3\r\nabc\r\n",
            b"3\nabc\r\n",
            b"3\r\nabcd\r\n",
            b"3\r\nabc\n\n",
            b"ffffffffffffffff\r\n",
            b"3 \r\nabc\r\n",
        ] {
            assert_eq!(taken(Body::chunked, bytes), Err(Malformed), "{bytes:?}");
        }
    }
}
