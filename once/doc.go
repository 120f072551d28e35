// Package once runs an effect once per key, in however many processes, and gives
// everyone its result.
//
//	receipt, err := once.Do(ctx, locks, records, "order/7f3a", 24*time.Hour,
//		func(ctx context.Context) ([]byte, error) {
//			return charge(ctx, order) // ctx ends if the lock is lost
//		})
//
// A lock alone keeps two from running at the same time. It does not keep the
// second from running after the first: a form that is sent twice, a payment that
// is tried again because its answer was lost. For that the result has to be
// remembered, by [Records], next to a [holdfast.Locker].
//
// # How it works
//
// Whoever asks for a key looks whether its result is there already. If not, it
// takes the lock "once/" + key, and tells the records that it begins, with the
// fencing token of the lock. Then it runs the effect, has the result remembered
// and unlocks. The others wait for the lock, or are refused, and find the result.
//
// "In progress" is therefore nothing that is written down and may stay for days:
// it is the lease of the lock. If the owner dies, the lock ends with its TTL, and
// one of those who ask takes over.
//
// # What it promises
//
//   - While records and locks keep what they were given, nobody runs the effect
//     of a key once its result is remembered, until the retention is over.
//   - Everyone who gets a result without an error gets the same. A former owner that
//     was paused or cut off can neither overwrite the result of a later one nor add
//     one where another has begun: the records refuse its token.
//   - An error or a panic of the effect is not remembered. The next may try.
//   - A key that was begun with one [Options.Fingerprint] is refused with another,
//     while it is begun, also by an owner that has died, and when it is done.
//
// # What can go wrong
//
//   - An owner that dies, or loses its lock, after the effect and before the
//     result is remembered leaves an effect that has happened and that runs again.
//     No lock can prevent that. What does is to let effect and result commit
//     together (see [SQL]), or to give what the effect reaches the key, as most
//     payment services take one, or the token, which refuses the outdated owner.
//   - A Finish that cannot reach the records leaves the same; its error matches
//     [ErrUnrecorded].
//   - The tokens of one lock store only compare with each other: all who share
//     records share one lock store, and a prefix.
//
// docs/once.md says for each kind of crash what holds.
package once
