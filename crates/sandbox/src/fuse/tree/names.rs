//! Names: making, moving, linking, removing.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use super::files::{Access, kept_flags};
use super::{
    Directory, EACH, NodeId, Outcome, Reply, Request, Sameness, Target, Tree, device, outside,
};
use crate::fuse::guard::{self, Creation};
use crate::mover::carrying::{self, Named, Paths};
use crate::plan::{Claim, WORKSPACE};
use crate::policy::Level;

impl Tree {
    pub(super) fn create(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let mut body = request.body;
        let (flags, mode) =
            (OFlags::from_bits_retain(body.u32()?), Mode::from_raw_mode(body.u32()?));
        body.skip(8)?;
        let name = body.name()?;
        let parent = request.node;
        match guard::create(self.level_of(parent, name)?)? {
            Creation::Named => {}
            Creation::Nameless => return self.create_nameless(request, mode, reply),
        }
        self.charge_one()?;
        let directory = self.directory(parent)?;
        let how = kept_flags(flags) | (flags & (OFlags::EXCL | OFlags::TRUNC));
        let how = how | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::openat(&*directory, name, how | OFlags::NOCTTY, mode)?;
        self.give_to(request, &directory, name);
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::EXIST);
        }
        let id = self.tell(parent, name, Level::Write, &stat, reply);
        self.opened(id, fd, Access::Direct, reply)
    }

    /// A file that works until it is closed, and has no name.
    fn create_nameless(&mut self, request: &Request<'_>, mode: Mode, reply: &mut Reply) -> Outcome {
        self.charge_one()?;
        let directory = self.directory(request.node)?;
        let how = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let refused = |_| Errno::ACCESS;
        let fd = rustix::fs::openat(&*directory, c".", how, mode).map_err(refused)?;
        let stat = rustix::fs::fstat(&fd)?;
        let kept = rustix::io::fcntl_dupfd_cloexec(&fd, 0)?;
        let id = self.nodes.remember_nameless(request.node, stat.st_ino, kept);
        self.granted.node = Some(id);
        self.put_entry_for(id, &stat, Duration::ZERO, reply);
        self.opened(id, fd, Access::Direct, reply)
    }

    pub(super) fn make_node(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let mut body = request.body;
        let mode = body.u32()?;
        body.skip(12)?;
        let name = body.name()?;
        let kind = FileType::from_raw_mode(mode);
        if !matches!(kind, FileType::RegularFile | FileType::Fifo | FileType::Socket) {
            return Err(Errno::PERM);
        }
        self.make(request, name, reply, |directory| {
            rustix::fs::mknodat(&**directory, name, kind, Mode::from_raw_mode(mode), 0)
        })
    }

    pub(super) fn make_directory(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let mut body = request.body;
        let mode = Mode::from_raw_mode(body.u32()?);
        body.skip(4)?;
        let name = body.name()?;
        self.make(request, name, reply, |directory| rustix::fs::mkdirat(&**directory, name, mode))
    }

    pub(super) fn make_link(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let mut body = request.body;
        let (name, text) = (body.name()?, body.text()?);
        self.make(request, name, reply, |directory| rustix::fs::symlinkat(text, &**directory, name))
    }

    fn make(
        &mut self,
        request: &Request<'_>,
        name: &CStr,
        reply: &mut Reply,
        how: impl FnOnce(&Directory) -> Outcome,
    ) -> Outcome {
        guard::name(self.level_of(request.node, name)?)?;
        self.charge_one()?;
        let directory = self.directory(request.node)?;
        how(&directory)?;
        self.give_to(request, &directory, name);
        let stat = rustix::fs::statat(&*directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.tell(request.node, name, Level::Write, &stat, reply);
        Ok(())
    }

    /// What was made belongs to who made it, where that is another user than
    /// this process; where everybody's files are the user's, to the owner of its directory.
    /// If that cannot be, it is still there.
    fn give_to(&self, request: &Request<'_>, directory: &Directory, name: &CStr) {
        let (uid, gid) = match self.ids.claims {
            Claim::All => rustix::fs::fstat(&**directory)
                .map_or((None, None), |stat| (Some(stat.st_uid), Some(stat.st_gid))),
            Claim::Own | Claim::Groups => {
                (outside(&self.ids.users, request.uid), outside(&self.ids.groups, request.gid))
            }
        };
        let uid = uid.filter(|uid| *uid != self.user.0);
        let gid = gid.filter(|gid| *gid != self.user.1);
        if uid.is_none() && gid.is_none() {
            return;
        }
        let has_group_of_directory = rustix::fs::fstat(&**directory)
            .is_ok_and(|stat| Mode::from_raw_mode(stat.st_mode).contains(Mode::SGID));
        let gid = gid.filter(|_| !has_group_of_directory).map(Gid::from_raw);
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let _ = rustix::fs::chownat(&**directory, name, uid.map(Uid::from_raw), gid, flags);
    }

    /// Another name for a file. Both have to be writable: who may only read a
    /// file must not get to write to it by another name.
    pub(super) fn link(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let mut body = request.body;
        let old = body.u64()?;
        let name = body.name()?;
        guard::change(self.nodes.get(old)?.level)?;
        guard::name(self.level_of(request.node, name)?)?;
        self.charge_one()?;
        let directory = self.directory(request.node)?;
        let Target::Named(from, old_name) = self.target(old)? else { return Err(Errno::NOENT) };
        let old_name = old_name.to_owned();
        match rustix::fs::linkat(&*from, &*old_name, &*directory, name, AtFlags::empty()) {
            Err(Errno::OVERFLOW) => {
                self.take_over(old)?;
                rustix::fs::linkat(&*from, &*old_name, &*directory, name, AtFlags::empty())?;
            }
            outcome => outcome?,
        }
        let stat = rustix::fs::statat(&*directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.tell(request.node, name, Level::Write, &stat, reply);
        self.nodes.get_mut(old)?.has_links = true;
        // The kernel takes the two for different files, and would not count.
        if let Some(fuse) = &self.fuse {
            device::forget_attributes(&**fuse, old);
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, request: &Request<'_>, flags: AtFlags) -> Outcome {
        let name = { request.body }.name()?;
        guard::change(self.level_of(request.node, name)?)?;
        let directory = self.directory(request.node)?;
        let id = self.nodes.find(request.node, name);
        let kept = id.and_then(|id| self.keep(id));
        rustix::fs::unlinkat(&*directory, name, flags)?;
        if let Some(id) = id {
            // Its room is free when the kernel has forgotten it.
            self.let_go_of_name(id, kept);
        } else {
            self.has_freed();
        }
        Ok(())
    }

    /// Those who have something open, or stand in it, go on with it when its
    /// name is gone. Until the kernel forgets it, that is: soon, if nobody has.
    fn keep(&mut self, id: NodeId) -> Option<OwnedFd> {
        self.target(id).ok()?.path_fd().ok()
    }

    /// A node's name is no more.
    fn let_go_of_name(&mut self, id: NodeId, kept: Option<OwnedFd>) {
        self.nodes.detach(id, kept);
        self.directories.close(id);
    }

    pub(super) fn rename(&mut self, request: &Request<'_>) -> Outcome {
        let mut body = request.body;
        let to = body.u64()?;
        let flags = if request.operation == super::Operation::Rename2 {
            let flags = RenameFlags::from_bits_retain(body.u32()?);
            body.skip(4)?;
            flags
        } else {
            RenameFlags::empty()
        };
        if !(flags - RenameFlags::NOREPLACE - RenameFlags::EXCHANGE).is_empty() {
            return Err(Errno::INVAL);
        }
        let (name, new_name) = (body.name()?, body.name()?);
        let from = request.node;
        guard::change(self.level_of(from, name)?)?;
        guard::name(self.level_of(to, new_name)?)?;
        let (directory, new_directory) = (self.directory(from)?, self.directory(to)?);
        self.check_move(&directory, (from, name), (to, new_name))?;
        if flags.contains(RenameFlags::EXCHANGE) {
            self.check_move(&new_directory, (to, new_name), (from, name))?;
        }
        let (moved, other) = (self.nodes.find(from, name), self.nodes.find(to, new_name));
        let kept = other.and_then(|other| self.keep(other));
        match rustix::fs::renameat_with(&*directory, name, &*new_directory, new_name, flags) {
            Err(Errno::XDEV) if !flags.contains(RenameFlags::EXCHANGE) => {
                let paths = Paths { from: self.written(from)?, to: self.written(to)? };
                let (old, new) = (directory.as_fd(), new_directory.as_fd());
                self.carry((old, name), (new, new_name), flags, &paths)?;
            }
            Err(Errno::OVERFLOW) if flags.is_empty() => {
                self.take_over(moved.ok_or(Errno::OVERFLOW)?)?;
                rustix::fs::renameat(&*directory, name, &*new_directory, new_name)?;
            }
            outcome => outcome?,
        }
        if flags.contains(RenameFlags::EXCHANGE) {
            self.exchange(moved, (from, name), other, (to, new_name));
        } else if moved.is_none() || moved != other {
            if let Some(other) = other {
                self.let_go_of_name(other, kept);
            }
            if let Some(moved) = moved {
                self.nodes.rename(moved, to, new_name);
            }
        }
        self.clear_up();
        Ok(())
    }

    /// Moves what the layer cannot rename: a directory that was there before. The
    /// directory itself has no layer where others change it, and is left to them.
    fn carry(
        &mut self,
        from: Named<'_>,
        to: Named<'_>,
        flags: RenameFlags,
        paths: &Paths,
    ) -> Outcome {
        match self.sameness {
            Sameness::Name => {}
            Sameness::Inode => return Err(Errno::XDEV),
        }
        let carrying::Extent { entries, bytes } = carrying::extent(from)?;
        self.require_room(bytes + (entries + 1) * EACH)?;
        let Some(records) = &mut self.records else { return Err(Errno::XDEV) };
        let mut record = records.begin().map_err(|_| Errno::XDEV)?;
        let outcome = carrying::carry(from, to, flags, (&mut record, paths));
        records.end(&record.name);
        self.directories.close_all();
        self.has_freed();
        outcome
    }

    /// A directory's path, as the sandbox has it.
    fn written(&self, directory: NodeId) -> Result<Vec<u8>, Errno> {
        let names = self.nodes.path(directory)?;
        let path = names.into_iter().flat_map(|name| [b"/", name].concat());
        Ok(WORKSPACE.bytes().chain(path).collect())
    }

    fn exchange(
        &mut self,
        one: Option<NodeId>,
        place: (NodeId, &CStr),
        other: Option<NodeId>,
        other_place: (NodeId, &CStr),
    ) {
        for id in [one, other].into_iter().flatten() {
            self.nodes.detach(id, None);
        }
        if let Some(one) = one {
            self.nodes.rename(one, other_place.0, other_place.1);
        }
        if let Some(other) = other {
            self.nodes.rename(other, place.0, place.1);
        }
    }

    /// A directory takes along what is in it, but nothing may come to another
    /// level by that, and nothing leave its place that may only be read.
    fn check_move(
        &self,
        directory: &Directory,
        from: (NodeId, &CStr),
        to: (NodeId, &CStr),
    ) -> Outcome {
        let stat = rustix::fs::statat(&**directory, from.1, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Ok(());
        }
        let path = |(parent, name): (NodeId, &CStr)| -> Result<Vec<Vec<u8>>, Errno> {
            let parents = self.nodes.path(parent)?;
            Ok(parents.into_iter().chain([name.to_bytes()]).map(Vec::from).collect())
        };
        let (old, new) = (path(from)?, path(to)?);
        if self.rules.can_move_unseen(&slices(&old), &slices(&new)) {
            return Ok(());
        }
        let mut unseen = vec![(Rc::clone(directory), from.1.to_owned(), Vec::<Vec<u8>>::new())];
        while let Some((parent, name, beneath)) = unseen.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(&*parent, &*name, flags, Mode::empty())?;
            let opened = Rc::new(opened);
            for entry in Dir::read_from(&*opened)? {
                let entry = entry?;
                if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                    continue;
                }
                let mut beneath = beneath.clone();
                beneath.push(entry.file_name().to_bytes().to_vec());
                let at = |start: &[Vec<u8>]| [start, &beneath].concat();
                let (old, new) = (at(&old), at(&new));
                if !self.rules.can_move_along(&slices(&old), &slices(&new)) {
                    return Err(Errno::ACCESS);
                }
                // All beneath what is hidden is, too.
                let is_hidden = self.rules.own_level(&slices(&old)) == Level::None;
                if entry.file_type() == FileType::Directory && !is_hidden {
                    unseen.push((Rc::clone(&opened), entry.file_name().to_owned(), beneath));
                }
            }
        }
        Ok(())
    }
}

fn slices(names: &[Vec<u8>]) -> Vec<&[u8]> {
    names.iter().map(Vec::as_slice).collect()
}
