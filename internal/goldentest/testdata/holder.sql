INSERT INTO {table} (name, version, format, fence, sole, since, until, claims)
VALUES ('holder', {now}, 1, {now+2}, 'holder', {now}, {now+3600000000}, '{"held":[{"public":"6e45386daeb0b86d","owner":"me","note":"a note","to":"a channel","ttl":3600000000,"span":3}]}')
