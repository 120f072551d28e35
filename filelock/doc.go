// Package filelock is a store in the files of one directory: locks among all processes of a
// host, including containers that share the directory. The store needs no server. The
// claims of a killed process end at once.
//
//	locks, err := holdfast.Open(ctx, "file:///run/app/locks", nil)
//
// # How it works
//
// A key has a small file with its claims: the holders and the queue. A call locks the file
// (flock, LockFileEx) for the few microseconds of reading, changing and writing the record.
// The claims themselves are leases in the record; one file therefore serves writers,
// readers, slots, tokens and the queue alike. A lock file is never removed.
//
// A Store has a session: a further file that stays locked for as long as the Store lives.
// The claims of the Store name the session. A call that is refused checks the sessions of
// the claims in its way. If the lock of a session is gone, the process has ended, and the
// claims of the session have ended too.
//
// A release writes the grant of the next waiter in the queue into the record, and closes
// the file. On Linux, inotify notifies the waiters. Elsewhere, and on network file systems,
// waiters poll the record: after 5 ms at first, then less often, every 250 ms at last.
//
// A record has two slots with checksums, written in turn. A process killed in the middle
// of a write leaves the older slot, and so the claims as they were before the write. A
// damaged file is refused by name and left as found.
//
// A released or broken claim may leave a tomb in the record: for ten seconds, an Acquire with
// the same id is refused, since the request was on its way during the release.
//
// A Store keeps lock files open between calls: an eighth of the limit of open files
// (RLIMIT_NOFILE), at least 128 and at most 4096; 128 on Windows. If more keys are in use,
// calls open lock files again, and are slower.
//
// # What it promises
//
//   - Mutual exclusion among the processes of a host, as strong as the file locks of the
//     operating system.
//   - If a process is killed, crashes or exits, its claims and its places in the queue end
//     at once. Nothing is left to clean up by hand.
//   - On Linux, leases are measured by the time since the host was started, sleep included
//     (CLOCK_BOOTTIME); steps of the wall clock change nothing. Elsewhere, processes share
//     only the wall clock, and setting the wall clock forward ends leases early.
//   - FIFO order.
//   - Fencing tokens that grow with every grant of a key: microseconds of the wall clock or
//     the next number, whichever is larger. Tokens also grow over a reboot and a lost file,
//     unless the clock is behind by then.
//   - Keys never lead out of the directory, and stay distinct on case-insensitive file
//     systems.
//   - Links, devices, and files of other users in the place of a lock file are refused. A
//     call fails at once with driver.ErrInvalid, and the error names the file. Files have
//     mode 0600, whatever the umask, unless the parameter mode says otherwise.
//
// # What can go wrong
//
//   - Network file systems (NFS, SMB, FUSE and others) are refused unless network=allow.
//     Locks are then as good as the locks of the file server. NFS before version 4 may
//     not lock at all. A client that loses its server for long loses its locks without
//     notice. Two hosts share no clock: a claim of another host stands until its release
//     or the end of its session, whatever the TTL. Use a store made for locks over the
//     network instead.
//   - Containers exclude one another if they mount the same directory of the same host. A
//     private directory is a separate set of locks.
//   - When a suspended machine wakes, its leases have expired, as intended. A stopped
//     process (SIGSTOP, a debugger) loses its claims after their TTL, as with every
//     store. In the rare case of a stop inside a call, the key waits until the process
//     continues or ends.
//   - Removing or renaming lock files (rm, cleaners of /tmp) frees held keys. The holder is
//     notified, at once on Linux and by the next renewal elsewhere. Use /run, /var/lib or
//     the runtime folder of a user, not /tmp.
//   - A process that may write to the files can lock other processes out. Share a directory
//     only with trusted users: a group (mode=0660), not all users.
//   - A file of 4 KiB stays behind for every key ever used. Use a different store for keys
//     that are never used twice, such as request ids. While no process runs, all files may
//     be removed.
//   - Nothing is flushed to disk: when the machine dies, all claims end. The record on the
//     disk may then be refused as damaged; the error says which file to remove.
//   - A queue of a thousand claims with long notes fills a record (1 MiB). Later claims
//     retry until there is room.
//
// # URL
//
//	file:///run/app/locks   an absolute path
//	file:locks              a relative one, at the time of Open
//
// A missing directory is created with mode 0700, or wider if the parameter mode is wider. A
// directory with write access for everybody needs its sticky bit. The parameters are
//
//	mode=0600|0660|0666     permissions of the files; with 0660 and 0666 files
//	                        of other users are accepted too
//	network=refuse|allow    what to do on a network file system
package filelock
