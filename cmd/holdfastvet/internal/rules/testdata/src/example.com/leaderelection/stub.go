// Package leaderelection wraps the library, as many modules do.
package leaderelection

import "context"

func New(name string, started func(context.Context), stopped func()) {}
