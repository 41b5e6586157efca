-- Words may be related in several senses; the greatest weight counts.
CREATE TABLE edges (
    start TEXT, end TEXT, relation TEXT, weight REAL, PRIMARY KEY (start, end, relation)
) WITHOUT ROWID;
CREATE TABLE forms (form TEXT, base TEXT, PRIMARY KEY (form, base)) WITHOUT ROWID;
