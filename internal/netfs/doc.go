// Package netfs tells network file systems from local ones. What some other
// machine or program grants, such as a lock on a file, is only as good as that.
package netfs
