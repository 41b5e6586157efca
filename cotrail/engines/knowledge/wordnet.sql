CREATE TABLE senses (lemma TEXT, synset INTEGER, written TEXT, PRIMARY KEY (lemma, synset)) WITHOUT ROWID;
CREATE TABLE irregular (form TEXT, speech INTEGER, base TEXT, PRIMARY KEY (form, speech, base)) WITHOUT ROWID;
CREATE TABLE links (source INTEGER, kind TEXT, target INTEGER, PRIMARY KEY (source, kind, target)) WITHOUT ROWID;
CREATE TABLE antonyms (lemma TEXT, other TEXT, PRIMARY KEY (lemma, other)) WITHOUT ROWID;
