// Package leaderelection has the signatures of the library.
package leaderelection

import "context"

type LeaderCallbacks struct {
	OnStartedLeading func(context.Context)
	OnStoppedLeading func()
}

type LeaderElectionConfig struct{ Callbacks LeaderCallbacks }

func RunOrDie(context.Context, LeaderElectionConfig) {}

type LeaderElector struct{}

func NewLeaderElector(LeaderElectionConfig) (*LeaderElector, error) { return nil, nil }

func (*LeaderElector) Run(context.Context) {}
