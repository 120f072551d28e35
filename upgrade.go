package holdfast

import "context"

// Upgrade turns a read lock into an exclusive lock, and waits for the other readers until ctx
// ends. There is no gap: nobody else writes between the read and the write. l must have been
// acquired with [Shared]; otherwise the error matches [ErrInvalid].
//
// Upgrade returns a second lock, beside l. Unlock of the second lock is the downgrade: l is
// still held, again without a gap. The second lock has the TTL and the [Note] of l, and a larger
// fencing token than every earlier holder. From then on, l has that token, too.
//
// The second lock ends with l: if l is lost, both are lost, and an Unlock of l first unlocks
// the second lock. [MaxHold] and [Progress] of l therefore limit the second lock, too.
//
// If another claim waits for the key before Upgrade does, that claim also waits for l, so
// waiting would be a deadlock. Upgrade then returns [ErrDeadlock] at once: unlock l, and lock
// the key exclusively. So if two readers call Upgrade, the first waits for the second, and the
// second is refused. Later claims queue behind the upgrade.
//
// If ctx ends the wait, the error matches both [ErrHeld] and the error of ctx. If the store has
// no queue, as Memcached, Upgrade does not wait, but fails with ErrHeld. If the store has read
// locks without upgrades, as Redlock, the error matches ErrInvalid.
//
// No lock that was acquired exclusively can be downgraded: acquire a Shared lock, and upgrade
// it.
func (l *Lock) Upgrade(ctx context.Context) (*Lock, error) {
	up, err := l.upgrade(ctx, false)
	return up, wrap("upgrade", l.Key(), err)
}

// TryUpgrade is [Lock.Upgrade] at once, or an error: [ErrHeld] if there are other readers, a
// [*HeldError] that names one of them. TryUpgrade returns [ErrDeadlock] if another claim waits
// for the key.
func (l *Lock) TryUpgrade(ctx context.Context) (*Lock, error) {
	up, err := l.upgrade(ctx, true)
	return up, wrap("tryupgrade", l.Key(), err)
}

func (l *Lock) upgrade(ctx context.Context, try bool) (*Lock, error) {
	switch ended := l.hold.Err(); {
	case ended != nil:
		return nil, ended
	case l.released.Load():
		return nil, ErrReleased
	case !l.hold.Shared():
		return nil, invalid(ErrInvalid, errUpgrade)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	hold, err := l.locker.engine.Upgrade(ctx, l.hold, try)
	if err != nil {
		return nil, err
	}
	return hold.Handle.(*Lock), nil
}
