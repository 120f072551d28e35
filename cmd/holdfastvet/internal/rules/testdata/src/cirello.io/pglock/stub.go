// Package pglock has the signatures of the library.
package pglock

import "context"

type Lock struct{}

func (*Lock) Close() error { return nil }

type Client struct{}

func (*Client) Acquire(string) (*Lock, error)                                        { return nil, nil }
func (*Client) Release(*Lock) error                                                  { return nil }
func (*Client) ReleaseContext(context.Context, *Lock) error                          { return nil }
func (*Client) Do(context.Context, string, func(context.Context, *Lock) error) error { return nil }
func (*Client) AcquireContext(context.Context, string) (*Lock, error)                { return nil, nil }

func New(any, ...any) (*Client, error) { return nil, nil }
