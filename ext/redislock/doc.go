// Package redislock is a store in Redis or Valkey.
package redislock
