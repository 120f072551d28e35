//go:build unix && !linux && !freebsd

package main

import "syscall"

// outlive and adopt can do nothing here: see outlive_linux.go.
func outlive(*syscall.SysProcAttr) {}

func adopt() {}
