-- A statement whose entities have no labels can't be said.
SELECT item, property, number, subject.label, properties.label, kind = 'time',
    CASE kind
        WHEN 'item' THEN object.label
        WHEN 'quantity' THEN text || coalesce(' ' || object.label, '')
        ELSE text
    END AS said,
    point, start, end
FROM statements JOIN items AS subject ON subject.id = item JOIN properties ON properties.id = property
LEFT JOIN items AS object ON object.id = statements.value
WHERE item IN (SELECT value FROM json_each(?))
    AND subject.label NOTNULL AND properties.label NOTNULL AND said NOTNULL
