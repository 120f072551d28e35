package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// meet starts a look-alike, and lets verify open the store there. A refusal by the store is as
// good as a run without a violation. Any other error has shown nothing.
func (r *row) meet(ctx context.Context, s server, verifier string, length time.Duration) error {
	_, program, _ := strings.Cut(s.setting, "=")
	r.alike = true
	r.server = strings.Replace(filepath.Base(filepath.Dir(program)), "-v", " ", 1) // a folder such as miniredis-v2.40.0
	addr, err := unused()
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(running, program, addr)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		stop()
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	defer func() {
		stop()
		<-ended
	}()
	if err := answers(ctx, addr, ended); err != nil {
		stop()
		<-ended
		r.failed, r.log = 1, said.String()
		return ctx.Err()
	}
	return r.judge(ctx, fmt.Sprintf(s.engine.url, addr), verifier, length)
}

// judge runs verify on the store of a URL.
func (r *row) judge(ctx context.Context, url, verifier string, length time.Duration) error {
	cmd := exec.CommandContext(ctx, verifier, "--store="+url, "--for="+length.String(), "--nemesis=kill", "--json")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if json.Unmarshal(text, &r.report) == nil {
		r.verified, r.broken = true, err != nil
		if r.broken {
			r.log = string(text)
		}
		return nil
	}
	lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
	_, why, refused := strings.Cut(lines[len(lines)-1], driver.ErrInvalid.Error()+": ")
	if !refused {
		r.failed, r.log = 1, complaint.String()
		return nil
	}
	r.refusal = strings.ReplaceAll(why, "|", "/")
	return nil
}

// unused returns a free address.
func unused() (addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// answers waits until a program accepts connections.
func answers(ctx context.Context, addr string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ended:
			return errors.New("the program has ended")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
