"""manual.py KILN OUT: writes kiln.1 and the completions of bash, zsh and fish into OUT.

Everything in them is what the command says of itself: `kiln --help`, `kiln COMMAND --help`,
`kiln list flags --json`. Nothing is written down a second time."""
import json
import os
import re
import subprocess
import sys

kiln, out = sys.argv[1], sys.argv[2]


def ask(*words):
    environment = {k: v for k, v in os.environ.items() if not k.startswith('KILN_')}
    done = subprocess.run([kiln, *words], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit('manual.py: kiln %s: %s' % (' '.join(words), done.stderr))
    return done.stdout


class Command:
    """What `kiln NAME --help` prints: usage, summary, text, options."""

    def __init__(self, name, summary):
        self.name, self.summary = name, summary
        lines = ask(name, '--help').split('\n')
        self.usage = lines[0].removeprefix('usage: ')
        split = lines.index('options:') if 'options:' in lines else len(lines)
        self.text = '\n'.join(lines[2:split]).strip('\n')
        self.options = []  # (names, argument, meaning)
        for line in lines[split + 1:]:
            found = re.match(r'  (-\S*(?:, -\S*)*)(?: (\S.*?))?  +(\S.*)$', line)
            if found:
                self.options.append((found[1].split(', '), found[2] or '', found[3]))
            elif line.startswith('   ') and self.options:
                names, argument, meaning = self.options.pop()
                self.options.append((names, argument, meaning + ' ' + line.strip()))
        if not self.options:
            sys.exit('manual.py: no options in the help of kiln %s' % name)


def read_commands():
    found = re.findall(r'^  (\w+) +(\S.*)$', ask('--help').split('commands:')[1], re.M)
    return [Command(name, summary) for name, summary in found]


# -- The manual page --

def roff(text):
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return re.sub(r"^([.'])", r'\\&\1', text, flags=re.M)


def manual(commands, version, flags):
    page = ['.TH KILN 1 "" "kiln %s" "User Commands"' % version, '.SH NAME',
            'kiln \\- run TorchScript models without libtorch', '.SH SYNOPSIS']
    for command in commands:
        page += ['.B ' + roff(command.usage), '.br']
    page += ['.SH COMMANDS']
    for command in commands:
        page += ['.SS ' + roff('kiln ' + command.name), roff(command.summary) + '.']
        if command.text:
            page += ['.PP', '.nf', roff(command.text), '.fi']
        for names, argument, meaning in command.options:
            title = ', '.join('\\fB%s\\fR' % roff(name) for name in names)
            page += ['.TP', title + (' \\fI%s\\fR' % roff(argument) if argument else ''),
                     roff(meaning)]
    page += ['.SH ENVIRONMENT', 'Each variable is also an option of the library, and of the command by',
             '.BR "\\-\\-set NAME=VALUE" .']
    for flag in flags:
        page += ['.TP', '\\fB%s\\fR (%s; default %s)' % (
            roff(flag['variable']), roff(flag['values']), roff(flag['default'] or 'none')),
            roff(flag['meaning'])]
    page += ['.SH EXIT STATUS', '.TP', '0', 'good', '.TP', '1',
             'results differ, a check failed, or the model raised', '.TP', '2',
             'usage, an unreadable or refused file, inputs that do not match the method', '.TP', '3',
             'a limit was reached, or memory is exhausted', '.TP', '4', 'a fault of Kiln\'s own']
    return '\n'.join(page) + '\n'


# -- Completions --

def bash(commands):
    cases = '\n'.join('    %s) words="%s" ;;' % (
        c.name, ' '.join(n for names, _, _ in c.options for n in names)) for c in commands)
    return '''# bash completion of kiln
_kiln() {
  local word=${COMP_WORDS[COMP_CWORD]} words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    words="%s --help --version"
  else
    case ${COMP_WORDS[1]} in
%s
    esac
  fi
  case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
    *) [ "$COMP_CWORD" = 1 ] && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
  esac
}
complete -o default -o bashdefault -F _kiln kiln
''' % (' '.join(c.name for c in commands), cases)


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(commands):
    names = ' '.join(quoted(c.name + ':' + c.summary.replace(':', '\\:')) for c in commands)
    cases = []
    for c in commands:
        specs = []
        for names_of, argument, meaning in c.options:
            text = re.sub(r'([\[\]:])', r'\\\1', meaning)
            for name in names_of:
                specs.append(quoted('*%s[%s]%s' % (name, text, ':value:_files' if argument else '')))
        cases.append("    %s) _arguments %s '*:file:_files' ;;" % (c.name, ' '.join(specs)))
    return '''#compdef kiln
_kiln() {
  local -a commands
  commands=(%s)
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
%s
  esac
}
_kiln "$@"
''' % (names, '\n'.join(cases))


def fish(commands):
    lines = ['# fish completion of kiln']
    for c in commands:
        lines.append('complete -c kiln -n __fish_use_subcommand -f -a %s -d %s' % (
            c.name, quoted(c.summary)))
        for names, argument, meaning in c.options:
            for name in names:
                flag = '-l ' + name[2:] if name.startswith('--') else '-s ' + name[1:]
                lines.append('complete -c kiln -n "__fish_seen_subcommand_from %s" %s%s -d %s' % (
                    c.name, flag, ' -r' if argument else '', quoted(meaning)))
    return '\n'.join(lines) + '\n'


def main():
    commands = read_commands()
    version = ask('--version').split()[1]
    flags = json.loads(ask('list', 'flags', '--json'))
    pages = {'kiln.1': manual(commands, version, flags), 'kiln': bash(commands),
             '_kiln': zsh(commands), 'kiln.fish': fish(commands)}
    for name, text in pages.items():
        with open(os.path.join(out, name), 'w') as file:
            file.write(text)


main()
