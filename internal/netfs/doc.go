// Package netfs distinguishes network file systems from local file systems. A lock on a
// file that a remote machine or program grants is only as good as the remote side.
package netfs
