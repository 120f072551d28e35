// Package grpclock lets gRPC servers run one call per key at a time, across all
// of their processes, and carries fencing tokens from clients to servers.
//
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(grpclock.UnaryServerInterceptor(locks, key, nil)),
//		grpc.ChainStreamInterceptor(grpclock.StreamServerInterceptor(locks, key, nil)),
//	)
//
// A [KeyFunc] says what a call needs for itself. It sees the method, the request
// and the context with the caller's metadata, and leaves a call unguarded by "":
//
//	func key(ctx context.Context, method string, req any) (string, error) {
//		switch r := req.(type) {
//		case *bankpb.WithdrawRequest:
//			return "account/" + r.GetAccount(), nil
//		}
//		return "", nil
//	}
//
// Of a stream, the request is not known when it begins: its key comes from the
// method, the metadata or the context. Two methods with the same key exclude each
// other; put the method into the key where they should not. Keys are those of the
// [holdfast.Locker], with its prefix, so that other programs can take the same
// locks.
//
// # What callers see
//
//	Aborted             another call has the lock (LOCK_HELD), or it was lost while the
//	                    handler ran (LOCK_LOST), which then may not have been alone
//	InvalidArgument     the key is required and missing, too long or not UTF-8 (KEY_INVALID)
//	Unavailable         the store of the locks cannot be asked (STORE_UNREACHABLE)
//	Internal            the server has asked for what cannot be (LOCK_INVALID), as
//	                    with a wrong option: its programmer's to mend
//	Canceled, DeadlineExceeded
//	                    the caller went away while it waited
//
// The words in capitals are the reason in the ErrorInfo of the status, in the
// domain [Domain]. LOCK_HELD comes with a RetryInfo: the time that is left of the
// holder's lease. It is an upper bound for one who crashed; a holder that lives may
// be ready at any moment, or renew. Clients in Go read all of it by [RefusalOf].
// Interceptors outside of these, such as one that logs, find the cause in the
// error by errors.Is and errors.As. What a client is told never names the holder or
// the store.
//
// # While the handler runs
//
// Its context carries the lock ([holdfast.FromContext]) and ends when the lock is
// lost, with the reason as its cause. The lock is given back when the handler
// returns, also after a panic: not earlier, because it may be at work until then.
// So a handler has to return when its context ends, as it does when the client
// cancels or goes away. Set [holdfast.MaxHold] against those that do not. Messages
// of a stream are neither received nor sent once its lock is lost; one that waits
// for a message then notices with the next. A stream has its lock from its
// beginning to its end.
//
// # Fencing tokens
//
// A lock that the client holds guards what the server does only if the server
// refuses the calls of those who have lost it. [UnaryClientFence] and
// [StreamClientFence] send the key and the token of the lock in the context, as
// holdfast-key-bin and holdfast-fence in the metadata:
//
//	conn, err := grpc.NewClient(target, grpc.WithUnaryInterceptor(grpclock.UnaryClientFence))
//
//	err = locks.Do(ctx, "account/42", func(ctx context.Context) error {
//		_, err := bankpb.NewBankClient(conn).Withdraw(ctx, &bankpb.WithdrawRequest{Account: "42"})
//		return err
//	})
//
// and [UnaryServerFence] and [StreamServerFence] check them:
//
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(grpclock.UnaryServerFence(&fence.Memory{}, key)))
//
// A call with a smaller token than one that was seen before is answered with
// FailedPrecondition (TOKEN_OUTDATED); without a token for the key that it needs,
// with InvalidArgument (TOKEN_MISSING, TOKEN_INVALID). Of several locks in the
// context, the innermost counts. Exclusive and shared locks fit; the tokens of
// slots say nothing about each other.
//
// [fence.Memory] serves a server that is the only process that writes: it remembers
// tokens until the process ends, and lets a call with a larger token wait until the
// handlers of smaller ones have returned. Where several processes write, or a
// restart must not forget, the write itself has to check, as by fence.SQL in its
// transaction: the handler gets key and token from [Token].
//
// Whoever may call can send a token, also one that is much too large and shuts out
// everybody else. So fences are for callers that are trusted, as are the locks.
package grpclock
