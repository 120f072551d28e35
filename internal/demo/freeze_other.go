//go:build !unix

package demo

import "errors"

// Config.Validate refuses the scene that would call freeze and thaw.
const canFreeze = false

func (p *process) freeze() error { return errors.ErrUnsupported }
func (p *process) thaw() error   { return errors.ErrUnsupported }
