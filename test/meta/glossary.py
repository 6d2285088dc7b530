"""glossary.py: that the words of docs/GLOSSARY.md are the code's."""
import fnmatch
import re

PAGE = 'docs/GLOSSARY.md'
# Words that had several meanings: a name that has one of them is among those of its row.
HELD = ('emit', 'guard', 'lane', 'piece', 'plain', 'record', 'simple', 'unit')
# Names that say something else, and why they still do.
KNOWN = {'kiln_group_record': 'what a model keeps of a group', 'KILN_ATTR_RECORD': 'its attribute'}
# Words that are gone, and what the glossary has instead.
GONE = {'band': 'padded tile', 'cook': 'step of a composite', 'granule': 'alignment',
        'recipe': 'composite', 'suspect': 'possible root'}


def rows(tree):
    """(word, names, places) of each row."""
    for line in tree.lines(PAGE):
        cells = [c.strip() for c in line.strip('|').split('|')]
        if line.startswith('| ') and len(cells) == 4 and cells[0] not in ('word', '---'):
            yield cells[0], re.findall(r'`([^`]+)`', cells[2]), re.findall(r'`([^`]+)`', cells[3])


def sources(tree):
    return [f for f in tree.find('.c', '.h', '.def', '.inc')
            if not f.startswith(('test/', 'bench/', 'examples/'))]


def code(tree, path):
    return re.sub(r'/\*.*?\*/', '', tree.text(path), flags=re.S)


def has_part(name, word):
    return re.search(r'(^|_)%s(s?|ter)(_|$)' % word, name, re.I)


def check_glossary_names(tree):
    """each word of the glossary has names that are in the places it tells, and stands once"""
    seen = []
    for word, names, places in rows(tree):
        seen.append(word)
        if not names or not places:
            yield '%s has no name or no place' % word
            continue
        for name in names:
            pattern = r'\b%s\b' % re.escape(name).replace(r'\*', r'\w*')
            if not any(re.search(pattern, tree.text(f)) for p in places
                       for f in sources(tree) if f == p or (p.endswith('/') and f.startswith(p))):
                yield '%s: there is no %s in %s' % (word, name, ', '.join(places))
    if not seen:
        yield 'there is no word in %s' % PAGE
    for word in sorted({w for w in seen if seen.count(w) > 1}):
        yield '%s stands twice' % word
    for word in HELD:
        if word not in seen:
            yield '%s is missing' % word


def check_words_have_one_meaning(tree):
    """a name that has a word of the glossary's means what that says"""
    allowed = {word: names for word, names, _ in rows(tree)}
    for path in sources(tree):
        for name in sorted(set(re.findall(r'\b(?:kiln|KILN)_\w+', code(tree, path)))):
            if name.endswith('_H') or name in KNOWN:
                continue
            for word in HELD:
                if has_part(name, word) and not any(fnmatch.fnmatchcase(name, pattern)
                                                    for pattern in allowed.get(word, [])):
                    yield '%s: %s is no %s as the glossary has it' % (path, name, word)


def check_words_are_gone(tree):
    """words that gave way to the field's do not come back"""
    for path in sources(tree):
        for name in sorted(set(re.findall(r'\b[A-Za-z_]\w*', code(tree, path)))):
            for word, now in GONE.items():
                if has_part(name, word):
                    yield '%s: %s (%s)' % (path, name, now)
