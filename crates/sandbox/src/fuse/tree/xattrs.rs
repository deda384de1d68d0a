//! Extended attributes: the user's own. The others are the system's, which do
//! not count in here; the kernel asks for some at every turn.

use std::ffi::CStr;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::{Outcome, Reply, Request, Tree, proc_path};
use crate::fuse::guard;
use crate::policy::Level;

/// Linux has no longer values, nor lists.
const MAX_VALUE: usize = 64 << 10;

fn is_users(name: &CStr) -> bool {
    name.to_bytes().starts_with(b"user.")
}

impl Tree {
    pub(super) fn set_xattr(&mut self, request: &Request<'_>) -> Outcome {
        let mut body = request.body;
        let (size, flags) = (body.u32()? as usize, body.u32()?);
        let name = body.text()?;
        let value = body.rest().get(..size).ok_or(Errno::INVAL)?;
        guard::change(self.nodes.get(request.node)?.level)?;
        if !is_users(name) {
            return Err(Errno::OPNOTSUPP);
        }
        let fd = self.target(request.node)?.path_fd()?;
        rustix::fs::setxattr(proc_path(&fd), name, value, XattrFlags::from_bits_retain(flags))
    }

    pub(super) fn remove_xattr(&mut self, request: &Request<'_>) -> Outcome {
        let name = { request.body }.text()?;
        guard::change(self.nodes.get(request.node)?.level)?;
        if !is_users(name) {
            return Err(Errno::OPNOTSUPP);
        }
        let fd = self.target(request.node)?.path_fd()?;
        rustix::fs::removexattr(proc_path(&fd), name)
    }

    pub(super) fn get_xattr(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let mut body = request.body;
        let size = body.u32()? as usize;
        body.skip(4)?;
        let name = body.text()?;
        // Content, as it were: not for those who may only look.
        if !is_users(name) || self.nodes.get(request.node)?.level < Level::Read {
            return Err(Errno::NODATA);
        }
        let fd = self.target(request.node)?.path_fd()?;
        let mut value = vec![0; MAX_VALUE];
        let length = rustix::fs::getxattr(proc_path(&fd), name, &mut value[..])?;
        answer(&value[..length], size, reply)
    }

    pub(super) fn list_xattrs(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let size = { request.body }.u32()? as usize;
        if self.nodes.get(request.node)?.level < Level::Read {
            return answer(&[], size, reply);
        }
        let fd = self.target(request.node)?.path_fd()?;
        let mut names = vec![0; MAX_VALUE];
        let length = rustix::fs::listxattr(proc_path(&fd), &mut names[..])?;
        let users: Vec<u8> = names[..length]
            .split_inclusive(|byte| *byte == 0)
            .filter(|name| name.starts_with(b"user."))
            .flatten()
            .copied()
            .collect();
        answer(&users, size, reply)
    }
}

/// The value, or how long it is for whoever asks with no room.
fn answer(value: &[u8], size: usize, reply: &mut Reply) -> Outcome {
    if size == 0 {
        reply.u32(value.len() as u32);
        reply.u32(0);
    } else if value.len() > size {
        return Err(Errno::RANGE);
    } else {
        reply.bytes(value);
    }
    Ok(())
}
