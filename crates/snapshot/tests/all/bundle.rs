//! Bundles: what was written is read, and everything else is an error.

use proptest::prelude::*;
use sessile_snapshot::bundle::{Error, Key, Kind, Limits, Reader, VERSION, Writer};
use std::io::{Cursor, Read};
use std::path::Path;

fn bundle(parts: &[(String, Kind, Vec<u8>)]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("work.sessile");
    let mut writer = Writer::create(&path).unwrap();
    for (name, kind, bytes) in parts {
        writer.add(name, *kind, bytes).unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

fn sample() -> Vec<u8> {
    bundle(&[
        ("session.json".into(), Kind::Session, b"{\"a\":1}".to_vec()),
        (
            "kernels/python".into(),
            Kind::Kernel,
            (0..3_000_u32).flat_map(u32::to_le_bytes).collect(),
        ),
        ("of-the-future".into(), Kind::Unknown(77), b"?".to_vec()),
        ("empty".into(), Kind::History, Vec::new()),
    ])
}

fn open(bytes: &[u8]) -> Result<Reader<Cursor<&[u8]>>, Error> {
    Reader::new(Cursor::new(bytes), Limits { total: 1 << 20, parts: 10 })
}

/// Reads all that can be read.
fn drain(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut reader = open(bytes)?;
    let names: Vec<_> = reader.parts().iter().map(|part| part.name.clone()).collect();
    names.iter().map(|name| reader.read(name, 1 << 20)).collect()
}

/// Puts the right checksum at the end, as somebody hostile would.
fn seal(bytes: &mut [u8]) {
    let (content, checksum) = bytes.split_last_chunk_mut::<32>().unwrap();
    *checksum = *blake3::hash(content).as_bytes();
}

#[test]
fn parts_are_listed_and_read_in_any_order() {
    let bytes = sample();
    let mut reader = open(&bytes).unwrap();
    let listed: Vec<_> =
        reader.parts().iter().map(|part| (part.name.as_str(), part.kind, part.length)).collect();
    let expected = [
        ("session.json", Kind::Session, 7),
        ("kernels/python", Kind::Kernel, 12_000),
        ("of-the-future", Kind::Unknown(77), 1),
        ("empty", Kind::History, 0),
    ];
    assert_eq!(listed, expected);
    assert_eq!(reader.read("empty", 10).unwrap(), b"");
    assert_eq!(reader.read("kernels/python", 20_000).unwrap().len(), 12_000);
    assert_eq!(reader.read("session.json", 10).unwrap(), b"{\"a\":1}");
    assert!(matches!(reader.read("other", 10), Err(Error::NoSuchPart(_))));
    assert!(matches!(reader.read("kernels/python", 100), Err(Error::TooLarge { .. })));
}

#[test]
fn a_bundle_made_by_hand_as_the_page_says_is_read() {
    let content = b"some text, some text, some text".repeat(9);
    let compressed = zstd::encode_all(&content[..], 19).unwrap();
    let mut bytes = b"\x93SESSILE\x01\x00".to_vec();
    bytes.extend(b"\x01\x04name\x03\x00");
    bytes.extend((content.len() as u64).to_le_bytes());
    for piece in compressed.chunks(7) {
        bytes.extend(u32::try_from(piece.len()).unwrap().to_le_bytes());
        bytes.extend(piece);
    }
    bytes.extend([0; 4]);
    bytes.extend(b"\x00\x01\x00\x00\x00");
    bytes.extend([0; 32]);
    seal(&mut bytes);
    let mut reader = open(&bytes).unwrap();
    assert_eq!(reader.part("name").unwrap().kind, Kind::History);
    assert_eq!(reader.read("name", 1_000).unwrap(), content);
}

#[test]
fn a_decoder_gets_no_more_memory_than_ours_needs() {
    use std::io::Write;
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.write_all(&vec![0; 1 << 20]).unwrap();
    let compressed = encoder.finish().unwrap();
    let mut bytes = b"\x93SESSILE\x01\x00\x01\x01n\x01\x00".to_vec();
    bytes.extend((1_u64 << 20).to_le_bytes());
    bytes.extend(u32::try_from(compressed.len()).unwrap().to_le_bytes());
    bytes.extend(&compressed);
    bytes.extend([0; 4]);
    bytes.extend(b"\x00\x01\x00\x00\x00");
    bytes.extend([0; 32]);
    seal(&mut bytes);
    assert!(matches!(drain(&bytes), Err(Error::Damaged(_))));
}

#[test]
fn large_parts_are_streamed_and_small_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("b");
    let length = 300 << 20;
    let mut writer = Writer::create(&path).unwrap();
    writer.add_reader("zeros", Kind::Files, length, std::io::repeat(0).take(length)).unwrap();
    writer.finish().unwrap();
    assert!(path.metadata().unwrap().len() < 100_000);
    let mut reader = Reader::open(&path, Limits::default()).unwrap();
    let copied = std::io::copy(&mut reader.stream("zeros").unwrap(), &mut std::io::sink());
    assert_eq!(copied.unwrap(), length);
    let small = Limits { total: length - 1, parts: 1 };
    assert!(matches!(Reader::open(&path, small), Err(Error::TooLarge { .. })));
}

#[test]
fn an_unfinished_bundle_leaves_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("b");
    std::fs::write(&path, "old").unwrap();
    let mut writer = Writer::create(&path).unwrap();
    writer.add("a", Kind::Session, b"a").unwrap();
    assert!(matches!(writer.add("a", Kind::Session, b"b"), Err(Error::BadName(_))));
    assert!(matches!(writer.add("", Kind::Session, b"b"), Err(Error::BadName(_))));
    let long = "x".repeat(256);
    assert!(matches!(writer.add(&long, Kind::Session, b"b"), Err(Error::BadName(_))));
    for announced in [2, 4] {
        let wrong =
            writer.add_reader(&announced.to_string(), Kind::Session, announced, &b"abc"[..]);
        assert!(matches!(wrong, Err(Error::WrongLength { .. })));
    }
    drop(writer);
    let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!((names.len(), std::fs::read(&path).unwrap()), (1, b"old".to_vec()));
    let nowhere = Writer::create(Path::new("/nowhere/at/all"));
    assert!(matches!(nowhere, Err(Error::Io { .. })));
}

#[test]
fn a_newer_version_says_so_and_other_files_are_told_apart() {
    let mut bytes = sample();
    bytes[8..10].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let error = open(&bytes).unwrap_err();
    assert!(matches!(error, Error::Newer { version: 2 }), "{error}");
    for other in [&b""[..], b"x", b"PK\x03\x04 and so on and so on"] {
        assert!(matches!(open(other), Err(Error::NotABundle)));
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let bytes = sample();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(open(&damaged).is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn every_cut_and_every_addition_is_found() {
    let bytes = sample();
    for length in 0..bytes.len() {
        assert!(open(&bytes[..length]).is_err(), "cut at {length}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(open(&longer), Err(Error::Damaged(_))));
    longer.extend(&bytes);
    assert!(open(&longer).is_err());
}

#[test]
fn lengths_that_lie_are_found() {
    let parts = [("a".to_owned(), Kind::Session, vec![7; 5_000])];
    let honest = bundle(&parts);
    // Behind the magic, the version, the tag, the name and the kind.
    let at = 10 + 1 + 1 + 1 + 2;
    for lie in [0, 1, 4_999, 5_001, 1 << 19] {
        let mut bytes = honest.clone();
        bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(lie));
        seal(&mut bytes);
        assert!(matches!(drain(&bytes), Err(Error::Damaged(_))), "{lie}");
    }
    let mut bytes = honest;
    bytes[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    seal(&mut bytes);
    assert!(matches!(drain(&bytes), Err(Error::TooLarge { .. })));
}

proptest! {
    #![proptest_config(sessile_testkit::cases(64))]

    #[test]
    fn what_was_written_is_read(
        parts in prop::collection::btree_map(
            "[a-zü/]{1,20}",
            (any::<u16>(), prop::collection::vec(any::<u8>(), 0..5_000)),
            0..9,
        ),
    ) {
        let parts: Vec<_> = parts
            .into_iter()
            .map(|(name, (kind, bytes))| (name, Kind::from_number(kind), bytes))
            .collect();
        let bytes = bundle(&parts);
        let mut reader = open(&bytes).unwrap();
        for (name, kind, content) in &parts {
            prop_assert_eq!(reader.part(name).unwrap().kind, *kind);
            prop_assert_eq!(&reader.read(name, 5_000).unwrap(), content);
        }
        prop_assert_eq!(reader.parts().len(), parts.len());
    }

    #[test]
    fn nothing_that_is_sealed_again_does_harm(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = sample();
        for (at, value) in edits {
            let at = at.index(bytes.len() - 32);
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            let from = cut.index(bytes.len() - 32);
            let to = (from + 7).min(bytes.len() - 32);
            bytes.drain(from..to);
        }
        seal(&mut bytes);
        // Whatever it says, it is read or refused, within the limits.
        if let Ok(parts) = drain(&bytes) {
            prop_assert!(parts.iter().map(Vec::len).sum::<usize>() <= 1 << 20);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let mut file = b"\x93SESSILE\x01\x00".to_vec();
        file.extend(bytes);
        file.extend([0; 32]);
        seal(&mut file);
        let _ = drain(&file);
    }
}

#[test]
fn a_seal_tells_whose_a_bundle_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("work.sessile");
    let (mine, yours) = (Key::new([1; 32]), Key::new([2; 32]));
    let mut writer = Writer::create(&path).unwrap();
    writer.add("a", Kind::Session, b"1").unwrap();
    writer.seal(&mine).unwrap();
    writer.finish().unwrap();
    let mut reader = Reader::open(&path, Limits::default()).unwrap();
    let found = reader.seal().unwrap().expect("a seal");
    assert!(found.is_of(&mine) && !found.is_of(&yours));

    // It stands for what is before it, and only as the last part.
    let mut writer = Writer::create(&path).unwrap();
    writer.seal(&mine).unwrap();
    writer.add("a", Kind::Session, b"1").unwrap();
    writer.finish().unwrap();
    assert!(Reader::open(&path, Limits::default()).unwrap().seal().unwrap().is_none());
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(1).position(|byte| byte == b"a").expect("a name");
    bytes[at] = b'b';
    seal(&mut bytes);
    assert!(drain(&bytes).is_ok(), "a checksum alone is no seal");
    assert!(open(&sample()).unwrap().seal().unwrap().is_none());
}
