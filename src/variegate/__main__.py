"""``python -m variegate`` is the ``variegate`` command."""

from variegate.cli import main

if __name__ == "__main__":
    main()
