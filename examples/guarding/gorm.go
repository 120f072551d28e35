package guarding

import (
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/pglock"
)

// GORM withdraws by GORM.
type GORM struct {
	DB     *gorm.DB
	Locks  *holdfast.Locker
	Fences fence.SQL
}

// An Account is a row of the table accounts.
type Account struct {
	ID, Balance, Version int64
}

// A Registration is a row of the table registrations.
type Registration struct {
	Phone, Owner string
}

// RowLock locks the row of the account for the length of a transaction.
func (g GORM) RowLock(ctx context.Context, id, amount int64) error {
	return g.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var account Account
		if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&account, id).Error; err != nil {
			return err
		}
		if account.Balance < amount {
			return ErrFunds
		}
		return tx.Model(&account).Update("balance", account.Balance-amount).Error
	})
}

// Lease locks the account in any store. The database refuses what comes from
// those who have lost the lock: first others before us, then us.
func (g GORM) Lease(ctx context.Context, id, amount int64) error {
	return g.Locks.Do(ctx, accountKey(id), func(ctx context.Context) error {
		lock, _ := holdfast.FromContext(ctx)
		key, token := lock.Key(), lock.Fence()
		if err := g.Fences.Check(ctx, g.DB.Statement.ConnPool, key, token); err != nil {
			return err
		}
		var account Account
		if err := g.DB.WithContext(ctx).First(&account, id).Error; err != nil {
			return err
		}
		if account.Balance < amount {
			return ErrFunds
		}
		// Here may be slow work: no transaction is open meanwhile.
		return g.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := g.Fences.Check(ctx, tx.Statement.ConnPool, key, token); err != nil {
				return err
			}
			return tx.Model(&account).Update("balance", account.Balance-amount).Error
		})
	})
}

// Version locks nothing, and begins again if another was faster.
func (g GORM) Version(ctx context.Context, id, amount int64) error {
	db := g.DB.WithContext(ctx)
	for attempt := 0; ; attempt++ {
		var account Account
		if err := db.First(&account, id).Error; err != nil {
			return err
		}
		if account.Balance < amount {
			return ErrFunds
		}
		done := db.Model(&account).Where("version = ?", account.Version).
			Updates(map[string]any{"balance": account.Balance - amount, "version": account.Version + 1})
		if done.Error != nil || done.RowsAffected == 1 {
			return done.Error
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// Register writes down whose a phone number is, once: another gets a
// [TakenError]. There is no row to lock before, so the number itself is locked.
func (g GORM) Register(ctx context.Context, phone, owner string) error {
	return g.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := pglock.LockSQLTx(ctx, tx.Statement.ConnPool.(pglock.SQLTx), "phone/"+phone); err != nil {
			return err
		}
		var first Registration
		err := tx.Where("phone = ?", phone).Take(&first).Error
		if err == nil {
			return &TakenError{Phone: phone, Owner: first.Owner}
		}
		if !errors.Is(err, gorm.ErrRecordNotFound) {
			return err
		}
		return tx.Create(&Registration{Phone: phone, Owner: owner}).Error
	})
}
