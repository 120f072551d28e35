// Package flock locks open files among processes, by the locks of the system: a lock
// belongs to a single opening of the file, and ends when the opening is closed.
package flock
