//! Requests of the kernel and replies to them: numbers in the machine's order.

use std::ffi::CStr;

use rustix::io::Errno;

/// What precedes every request.
const REQUEST_HEADER: usize = 40;
/// What precedes every reply: length, error, the request's number.
pub(super) const REPLY_HEADER: usize = 16;

/// What the kernel asks for. What is not named here is refused as unknown,
/// which the kernel remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Lookup,
    Forget,
    BatchForget,
    GetAttr,
    SetAttr,
    ReadLink,
    SymLink,
    MkNod,
    MkDir,
    Unlink,
    RmDir,
    Rename,
    Rename2,
    Link,
    Open,
    Read,
    Write,
    StatFs,
    Release,
    Fsync,
    SetXattr,
    GetXattr,
    ListXattr,
    RemoveXattr,
    Flush,
    Init,
    OpenDir,
    ReadDir,
    ReadDirPlus,
    ReleaseDir,
    FsyncDir,
    Create,
    Destroy,
    Fallocate,
    Lseek,
    CopyFileRange,
    SyncFs,
    Unknown,
}

impl Operation {
    fn of(code: u32) -> Self {
        match code {
            1 => Self::Lookup,
            2 => Self::Forget,
            3 => Self::GetAttr,
            4 => Self::SetAttr,
            5 => Self::ReadLink,
            6 => Self::SymLink,
            8 => Self::MkNod,
            9 => Self::MkDir,
            10 => Self::Unlink,
            11 => Self::RmDir,
            12 => Self::Rename,
            13 => Self::Link,
            14 => Self::Open,
            15 => Self::Read,
            16 => Self::Write,
            17 => Self::StatFs,
            18 => Self::Release,
            20 => Self::Fsync,
            21 => Self::SetXattr,
            22 => Self::GetXattr,
            23 => Self::ListXattr,
            24 => Self::RemoveXattr,
            25 => Self::Flush,
            26 => Self::Init,
            27 => Self::OpenDir,
            28 => Self::ReadDir,
            29 => Self::ReleaseDir,
            30 => Self::FsyncDir,
            35 => Self::Create,
            38 => Self::Destroy,
            42 => Self::BatchForget,
            43 => Self::Fallocate,
            44 => Self::ReadDirPlus,
            45 => Self::Rename2,
            46 => Self::Lseek,
            47 => Self::CopyFileRange,
            50 => Self::SyncFs,
            _ => Self::Unknown,
        }
    }
}

/// A request, with what follows its header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) operation: Operation,
    pub(super) unique: u64,
    pub(super) node: u64,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) body: Body<'a>,
}

impl<'a> Request<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut header = Body(bytes.get(..REQUEST_HEADER)?);
        let length = header.u32().ok()? as usize;
        let operation = Operation::of(header.u32().ok()?);
        let (unique, node) = (header.u64().ok()?, header.u64().ok()?);
        let (uid, gid) = (header.u32().ok()?, header.u32().ok()?);
        let body = Body(bytes.get(REQUEST_HEADER..length)?);
        Some(Self { operation, unique, node, uid, gid, body })
    }
}

/// What is left to read of a request. The kernel is trusted to be well-formed,
/// but a short message is an error and no panic.
#[derive(Debug, Clone, Copy)]
pub(super) struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Errno> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Errno::INVAL)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Errno> {
        self.take().map(u32::from_ne_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Errno> {
        self.take().map(u64::from_ne_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Errno> {
        self.take().map(i64::from_ne_bytes)
    }

    pub(super) fn skip(&mut self, bytes: usize) -> Result<(), Errno> {
        self.0 = self.0.get(bytes..).ok_or(Errno::INVAL)?;
        Ok(())
    }

    /// A text up to its NUL.
    pub(super) fn text(&mut self) -> Result<&'a CStr, Errno> {
        let text = CStr::from_bytes_until_nul(self.0).map_err(|_| Errno::INVAL)?;
        self.0 = &self.0[text.to_bytes_with_nul().len()..];
        Ok(text)
    }

    /// The name of one entry of a directory.
    pub(super) fn name(&mut self) -> Result<&'a CStr, Errno> {
        let name = self.text()?;
        match name.to_bytes() {
            b"" | b"." | b".." => Err(Errno::INVAL),
            bytes if bytes.contains(&b'/') => Err(Errno::INVAL),
            _ => Ok(name),
        }
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// A reply in the making, with room for its header.
#[derive(Debug)]
pub(super) struct Reply {
    bytes: Vec<u8>,
}

impl Default for Reply {
    fn default() -> Self {
        Self::with_room(4096)
    }
}

impl Reply {
    pub(super) fn with_room(bytes: usize) -> Self {
        let mut reply = Self { bytes: Vec::with_capacity(REPLY_HEADER + bytes) };
        reply.clear();
        reply
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(REPLY_HEADER, 0);
        // What a large read took is given back.
        if self.bytes.capacity() > 64 << 10 {
            self.bytes.shrink_to(64 << 10);
        }
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_ne_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_ne_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_ne_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn zeros(&mut self, count: usize) {
        self.bytes.resize(self.bytes.len() + count, 0);
    }

    /// Up to a multiple of eight, as entries of directories are.
    pub(super) fn align(&mut self) {
        let length = self.bytes.len() - REPLY_HEADER;
        self.zeros(length.next_multiple_of(8) - length);
    }

    /// Without the header.
    pub(super) fn length(&self) -> usize {
        self.bytes.len() - REPLY_HEADER
    }

    /// To be read into.
    pub(super) fn buffer(&mut self, size: usize) -> &mut Vec<u8> {
        self.bytes.reserve_exact(size);
        &mut self.bytes
    }

    /// Without what is beyond a size.
    pub(super) fn shorten(&mut self, size: usize) {
        self.bytes.truncate(REPLY_HEADER + size);
    }

    /// Complete, with its header.
    pub(super) fn finish(&mut self, unique: u64, outcome: Result<(), Errno>) -> &[u8] {
        let error = match outcome {
            Ok(()) => 0,
            Err(errno) => {
                self.bytes.truncate(REPLY_HEADER);
                -errno.raw_os_error()
            }
        };
        self.head(error.cast_unsigned(), unique)
    }

    /// Complete, as something that was not asked for.
    pub(super) fn notify(&mut self, what: u32) -> &[u8] {
        self.head(what, 0)
    }

    fn head(&mut self, error: u32, unique: u64) -> &[u8] {
        let length = u32::try_from(self.bytes.len()).expect("replies are below 4 GiB");
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[4..8].copy_from_slice(&error.to_ne_bytes());
        self.bytes[8..16].copy_from_slice(&unique.to_ne_bytes());
        &self.bytes
    }
}
