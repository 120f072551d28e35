package netfs

import "syscall"

// networks are the file systems whose locks are granted by a remote machine or program, by
// the magic number from statfs.
var networks = map[uint32]string{
	0x6969:     "nfs",
	0x517b:     "smb",
	0xff534d42: "cifs",
	0xfe534d42: "smb2",
	0x65735546: "fuse",
	0x01021997: "9p",
	0x5346414f: "afs",
	0x6b414653: "kafs",
	0x73757245: "coda",
	0x00c36400: "ceph",
	0x01161970: "gfs2",
	0x7461636f: "ocfs2",
	0x0bd00bd0: "lustre",
	0x47504653: "gpfs",
	0x564c:     "ncp",
	0x786f4256: "vboxsf",
	0xbacbacbc: "vmhgfs",
	0x19830326: "beegfs",
	0xaad7aaea: "panfs",
}

// Kind returns the kind of network file system of a directory, "" if the file system is
// local.
func Kind(dir string) string {
	var st syscall.Statfs_t
	if err := statfs(dir, &st); err != nil {
		return "unknown: " + err.Error()
	}
	return networks[uint32(st.Type)] //nolint:unconvert // int32 on some, int64 on others
}
