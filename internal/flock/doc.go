// Package flock locks open files among processes, as the system does: a lock
// belongs to one opening of the file, and ends when that is closed.
package flock
