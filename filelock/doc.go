// Package filelock is a store in the files of one directory: locks among all
// processes of a host, containers that share the directory included. It needs
// no server, and a process that is killed is out at once.
//
//	locks, err := holdfast.Open(ctx, "file:///run/app/locks", nil)
//
// # How it works
//
// Each key has a small file, which holds the claims on it: who holds the key
// and who stands in line. A call locks the file (flock, LockFileEx) for the few
// microseconds that it takes to read the record, change it and write it back.
// The claims themselves are leases in the record, so one file serves writers,
// readers, slots, tokens and the line alike. It is never removed.
//
// Each Store has a session: one more file, locked for as long as the Store
// lives. Its claims name it. Whoever finds a claim in its way looks whether
// that lock is still there; if not, the process has ended, however that
// happened, and so have its claims.
//
// Whoever releases a key writes the grant of the next in line into the record
// and closes the file, which those who wait hear by inotify, on Linux.
// Elsewhere, and on network file systems, they look at the record: after 5 ms
// at first, then ever more seldom, every 250 ms at last.
//
// A record has two slots with checksums, written in turn. A process that is
// killed in the middle of a write leaves the older one, and so the claims as
// they were. A file that is neither whole nor fresh is refused by name and left
// as it is.
//
// # What it promises
//
//   - Mutual exclusion among the processes of a host, by the strength of the
//     system's own file locks.
//   - The claims of a process that is killed, crashes or exits end at once, and
//     so does its place in line. Nothing is left to clean up by hand.
//   - Leases are measured by the time since the host was started, sleep
//     included (CLOCK_BOOTTIME), on Linux. Steps of the wall clock change
//     nothing there; elsewhere the wall clock is what the processes share, and
//     setting it forward ends leases early.
//   - First come, first served.
//   - Fencing tokens that grow with every grant of a key: microseconds of the
//     wall clock or the next number, whichever is larger. They also grow over a
//     reboot and a lost file, unless the clock is behind by then.
//   - Keys never lead out of the directory, and differ on file systems to which
//     upper and lower case are the same.
//   - Links, devices, and files of other users in the place of a lock file are
//     refused. Files are 0600, whatever the umask, unless mode says otherwise.
//
// # What can go wrong
//
//   - Network file systems (NFS, SMB, FUSE and others) are refused unless
//     network=allow. On them locks are as good as the server's: NFS before
//     version 4 may not lock at all, and a client that loses its server for
//     long loses its locks without being told. Two hosts do not share a clock,
//     so a claim of another host stands until it is released or its session
//     ends, whatever its TTL. Use a server made for locks instead.
//   - Containers exclude one another if they mount the same directory of the
//     same host. A directory of their own is another set of locks.
//   - A suspended machine wakes with its leases run out, as it should. A
//     process that is stopped (SIGSTOP, a debugger) loses its claims after
//     their TTL, like with any store; in the rare case that it is stopped
//     inside a call, that key waits for it to go on or end.
//   - Whoever removes or renames lock files (rm, cleaners of /tmp) sets keys
//     free that are held. The holder is told, at once on Linux and by its next renewal
//     elsewhere. Use /run, /var/lib or a user's runtime folder, not /tmp.
//   - Whoever may write to the files can lock others out. Share a directory
//     only with those you trust: a group (mode=0660), not all users.
//   - A file of 4 KiB stays behind for every key that was ever used. Keys that
//     are never used twice, such as request ids, belong into another store.
//     With no process running, all may be removed.
//   - Nothing is flushed to disk: when the machine dies, so do all claims. What
//     the disk then holds of a record may be refused as damaged; the error
//     says which file to remove.
//   - A line of a thousand claims with long notes fills a record (1 MiB). Who
//     comes later asks again until there is room.
//
// # URL
//
//	file:///run/app/locks   an absolute path
//	file:locks              a relative one, at the time of Open
//
// A missing directory is made, for its owner alone (0700) unless mode is wider.
// One that everybody may write to needs its sticky bit. The parameters are
//
//	mode=0600|0660|0666     permissions of the files; with 0660 and 0666 files
//	                        of other users are accepted too
//	network=refuse|allow    what to do on a network file system
package filelock
